// nf4_scalar.cc by bounds, 16 elements at a time.
#include "kernels/avx2/nf4_quantize.h"

const qcts_kernel qcts_kernel_quantize_nf4_avx2 = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "nf4", "avx2",
    "two passes over 16 blocks: scalers, then codes by four steps of a binary search; bound by these",
    {qcts::supports_problem<qcts_kernel_quantize_nf4_avx2>,
     qcts::run_checked<qcts_kernel_quantize_nf4_avx2,
                       qcts::avx2::quantize_nf4_problem<qcts::avx2::Nf4Narrow>>,
     qcts::nf4_workspace_bytes});
