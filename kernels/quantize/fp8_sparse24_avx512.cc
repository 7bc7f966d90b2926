// kernels/avx512/sparse24_quantize.h.
#include "kernels/avx512/sparse24_quantize.h"

const qcts_kernel qcts_kernel_quantize_fp8_sparse24_avx512 = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "fp8_sparse24", "avx512",
    "as fp8_row, a part of a row at a time, of which two of four codes are gathered",
    {qcts::supports_problem<qcts_kernel_quantize_fp8_sparse24_avx512>,
     qcts::avx2::quantize_sparse24_problem<qcts_kernel_quantize_fp8_sparse24_avx512,
                                           qcts::avx512::WideFloat8Parts, qcts::avx512::WideCompress24>});
