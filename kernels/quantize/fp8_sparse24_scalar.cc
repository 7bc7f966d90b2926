// torchao 0.18 Float8Sparse2x4_2DData2DMetadataTensor.from_hp in layout "plain": scales and codes as fp8_row,
// of every four codes the two that are not zero with their places (kernels/families/sparse24.h). -0 counts as
// zero.
#include "kernels/scalar/sparse24.h"

namespace {

qcts_status run(const qcts_problem* p) {
  if (qcts::check_run(qcts_kernel_quantize_fp8_sparse24_scalar, p) != QCTS_OK) return QCTS_INVALID;
  return qcts::quantize_sparse24(*p, qcts::scalar::quantize_sparse24_rows);
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_fp8_sparse24_scalar =
    qcts::exact_entry(QCTS_OP_QUANTIZE, "fp8_sparse24", "scalar",
                      "two passes a row: absolute maximum, then codes; bound by one division an element",
                      {qcts::supports_problem<qcts_kernel_quantize_fp8_sparse24_scalar>, run});
