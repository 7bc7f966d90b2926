// torchao 0.18 Float8Tensor.dequantize (quant_primitives.py: _dequantize_affine_float8): the code as float32
// times the float32 scale, rounded to float32 and then to the weight's dtype. The 256 codes are decoded once
// a call.
#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

struct Task {
  const qcts_problem* problem;
  const uint8_t* qdata;
  const void* scale;
  float value[256];
};

void dequantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    const float scale = qcts::scalar::load(QCTS_F32, task.scale, n);
    for (int64_t k = 0; k < p.k; ++k)
      qcts::scalar::store(p.w_dtype, row, k, task.value[task.qdata[n * p.k + k]] * scale);
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_dequantize_fp8_row_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->planes, problem->n_planes, name);
  };
  Task task = {problem, static_cast<const uint8_t*>(data("qdata")), data("scale"), {}};
  for (int code = 0; code < 256; ++code)
    task.value[code] = qcts::scalar::e4m3fn_to_f32(static_cast<uint8_t>(code));
  qcts::parallel_for(problem->threads, problem->n, 1, dequantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_fp8_row_scalar =
    qcts::exact_entry(QCTS_OP_DEQUANTIZE, "fp8_row", "scalar",
                      "a table of the 256 codes, one multiplication and one rounding an element",
                      {qcts::supports_problem<qcts_kernel_dequantize_fp8_row_scalar>, run});
