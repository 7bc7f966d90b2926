// torchao 0.18 IntxUnpackedToInt8Tensor.from_hp: parameters as kernels/families/affine_groups.h has them.
#include "kernels/avx2/groups.h"

const qcts_kernel qcts_kernel_quantize_intx_avx2 = qcts::exact_rows<
    qcts_kernel_quantize_intx_avx2, qcts::avx2::quantize_affine_groups<qcts::avx2::AffineParts>>(
    QCTS_OP_QUANTIZE, "intx", "avx2",
    "ranges, parameters and codes in three passes over eight groups; bound by two instructions an element");
