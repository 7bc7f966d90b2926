// torchao 0.18 IntxUnpackedToInt8Tensor.from_hp: parameters as kernels/families/affine_groups.h has them.
#include "kernels/scalar/groups.h"

const qcts_kernel qcts_kernel_quantize_intx_scalar =
    qcts::exact_rows<qcts_kernel_quantize_intx_scalar, qcts::scalar::quantize_affine_groups>(
        QCTS_OP_QUANTIZE, "intx", "scalar",
        "two passes a group: its range, then its codes; bound by the rounding, one element at a time");
