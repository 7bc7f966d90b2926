// kernels/avx512/sparse24_quantize.h.
#include "kernels/avx512/sparse24_quantize.h"

namespace {

qcts_status run(const qcts_problem* p) {
  if (qcts::check_run(qcts_kernel_quantize_fp8_sparse24_avx512, p) != QCTS_OK) return QCTS_INVALID;
  return qcts::quantize_sparse24(*p, qcts::avx2::quantize_sparse24_rows<qcts::avx512::WideFloat8Parts>);
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_fp8_sparse24_avx512 =
    qcts::exact_entry(QCTS_OP_QUANTIZE, "fp8_sparse24", "avx512",
                      "as fp8_row, a part of a row at a time, of which two of four codes are gathered",
                      {qcts::supports_problem<qcts_kernel_quantize_fp8_sparse24_avx512>, run});
