// TinyQ 006b7b9, w8_a32_forward: the code in float32 times the row's scale, one rounding. W8A16 has no such
// step; the same product, rounded to the dtype of its scales, is what its linear multiplies by.
#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

struct Task {
  const qcts_problem* problem;
  const int8_t* codes;
  const void* scales;
};

void dequantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    const float scale = qcts::scalar::load(p.w_dtype, task.scales, n);
    for (int64_t k = 0; k < p.k; ++k)
      qcts::scalar::store(p.w_dtype, row, k, static_cast<float>(task.codes[n * p.k + k]) * scale);
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_tinyq_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const int8_t*>(data("int8_weights")), data("scales")};
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_tinyq_scalar =
    qcts::exact_entry(QCTS_OP_DEQUANTIZE, "tinyq", "scalar", "one multiplication and one rounding an element",
                      {qcts::supports_problem<qcts_kernel_dequantize_tinyq_scalar>, run});
