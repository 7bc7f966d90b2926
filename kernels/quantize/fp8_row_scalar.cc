// torchao 0.18 Float8Tensor.from_hp per row, the torch path (quant_primitives.py: _choose_scale_float8,
// _quantize_affine_float8). The scale has no floor: an all-zero row divides 0 by 0 and stores NaN codes, as
// the original does.
#include <math.h>

#include "kernels/entry.h"
#include "kernels/scalar.h"

namespace {

using qcts::scalar::load;

struct Task {
  const qcts_problem* problem;
  uint8_t* qdata;
  char* scale;
};

float absolute_maximum(uint32_t dtype, const char* row, int64_t k) {
  float maximum = 0;
  for (int64_t i = 0; i < k; ++i) {
    const float magnitude = fabsf(load(dtype, row, i));
    if (!(magnitude <= maximum)) maximum = magnitude;
    if (maximum != maximum) break;
  }
  return maximum;
}

float clamp_finite(float value) {
  if (value > 448.0f) return 448.0f;
  return value < -448.0f ? -448.0f : value;
}

void quantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    const float scale = qcts::scalar::round_to(p.w_dtype, absolute_maximum(p.w_dtype, row, p.k) / 448.0f);
    for (int64_t i = 0; i < p.k; ++i)
      task.qdata[n * p.k + i] =
          qcts::scalar::clamped_f32_to_e4m3fn(clamp_finite(load(p.w_dtype, row, i) / scale));
    std::memcpy(task.scale + 4 * n, &scale, 4);
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_quantize_fp8_row_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->out_planes, problem->n_out_planes, name);
  };
  Task task = {problem, static_cast<uint8_t*>(data("qdata")), static_cast<char*>(data("scale"))};
  qcts::parallel_for(problem->threads, problem->n, 1, quantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_fp8_row_scalar =
    qcts::exact_entry(QCTS_OP_QUANTIZE, "fp8_row", "scalar",
                      "two passes a row: absolute maximum, then codes; bound by one division an element",
                      {qcts::supports_problem<qcts_kernel_quantize_fp8_row_scalar>, run});
