// torchao 0.18 IntxUnpackedToInt8Tensor.from_hp: parameters as kernels/families/affine_groups.h has them.
#include "kernels/avx512/groups.h"

const qcts_kernel qcts_kernel_quantize_intx_avx512 =
    qcts::exact_rows<qcts_kernel_quantize_intx_avx512,
                     qcts::avx2::quantize_affine_groups<qcts::avx512::WideAffine>>(
        QCTS_OP_QUANTIZE, "intx", "avx512",
        "ranges, parameters and codes in three passes over 16 groups; bound by these and by memory");
