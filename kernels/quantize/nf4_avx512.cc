// nf4_scalar.cc by bounds, 32 elements at a time.
#include "kernels/avx512/nf4_quantize.h"

const qcts_kernel qcts_kernel_quantize_nf4_avx512 = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "nf4", "avx512",
    "two passes over 16 blocks: scalers, then codes by four steps of a binary search; bound by these",
    {qcts::supports_problem<qcts_kernel_quantize_nf4_avx512>,
     qcts::run_checked<qcts_kernel_quantize_nf4_avx512,
                       qcts::avx2::quantize_nf4_problem<qcts::avx512::WideNf4>>,
     qcts::nf4_workspace_bytes});
