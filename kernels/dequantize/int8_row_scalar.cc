// torchao 0.18 Int8Tensor.dequantize (quant_primitives.py: _dequantize_affine_no_dtype_check): the code minus
// the zero point, exact in every dtype, times the float32 scale, rounded to float32 and then to the weight's
// dtype.
#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

struct Task {
  const qcts_problem* problem;
  const int8_t* qdata;
  const void* scale;
  const int8_t* zero_point;
};

void dequantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    const float scale = qcts::scalar::load(QCTS_F32, task.scale, n);
    const int zero_point = task.zero_point[n];
    for (int64_t k = 0; k < p.k; ++k)
      qcts::scalar::store(p.w_dtype, row, k,
                          static_cast<float>(task.qdata[n * p.k + k] - zero_point) * scale);
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_int8_row_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const int8_t*>(data("qdata")), data("scale"),
               static_cast<const int8_t*>(data("zero_point"))};
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int8_row_scalar = qcts::exact_entry(
    QCTS_OP_DEQUANTIZE, "int8_row", "scalar", "one multiplication and one rounding an element",
    {qcts::supports_problem<qcts_kernel_dequantize_int8_row_scalar>, run});
