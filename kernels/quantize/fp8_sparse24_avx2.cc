// kernels/avx2/sparse24_quantize.h.
#include "kernels/avx2/sparse24_quantize.h"

const qcts_kernel qcts_kernel_quantize_fp8_sparse24_avx2 = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "fp8_sparse24", "avx2",
    "as fp8_row, a part of a row at a time, of which two of four codes are gathered",
    {qcts::supports_problem<qcts_kernel_quantize_fp8_sparse24_avx2>,
     qcts::avx2::quantize_sparse24_problem<qcts_kernel_quantize_fp8_sparse24_avx2, qcts::avx2::Float8Parts,
                                           qcts::avx2::Compress24>});
