// torchao 0.18 Int8Tensor.from_hp per row (quant_primitives.py: _choose_qparams_affine SYMMETRIC,
// _quantize_affine). Two passes over a row that stays in cache; the reciprocal and the product are separate
// roundings, as in the original.
#include <math.h>

#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

using qcts::scalar::load;
using qcts::scalar::round_to;

struct Planes {
  int8_t* qdata;
  char* scale;
  int8_t* zero_point;
};
struct Task {
  const qcts_problem* problem;
  Planes out;
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

// (127 - -128) / 2 in the weight's dtype, then at least float32's epsilon 2^-23.
float row_scale(uint32_t dtype, float absmax) {
  const float scale = round_to(dtype, absmax / 127.5f);
  return scale < 0x1p-23f ? 0x1p-23f : scale;
}

// NaN, which only a non-finite row gives, becomes 0.
int8_t code_of(float scaled) {
  const float rounded = nearbyintf(scaled);
  if (!(rounded > -128)) return rounded <= -128 ? -128 : 0;
  return static_cast<int8_t>(rounded < 127 ? rounded : 127);
}

void quantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    const float scale = row_scale(p.w_dtype, absolute_maximum(p.w_dtype, row, p.k));
    const float reciprocal = 1.0f / scale;
    for (int64_t i = 0; i < p.k; ++i)
      task.out.qdata[n * p.k + i] = code_of(load(p.w_dtype, row, i) * reciprocal);
    std::memcpy(task.out.scale + 4 * n, &scale, 4);
    task.out.zero_point[n] = 0;
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_quantize_int8_row_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->out_planes, problem->n_out_planes, name);
  };
  Task task = {problem,
               {static_cast<int8_t*>(data("qdata")), static_cast<char*>(data("scale")),
                static_cast<int8_t*>(data("zero_point"))}};
  qcts::parallel_for(problem->threads, problem->n, 1, quantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int8_row_scalar = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "int8_row", "scalar",
    "two passes a row: absolute maximum, then codes; bound by float rounding, one element at a time",
    {qcts::supports_problem<qcts_kernel_quantize_int8_row_scalar>, run});
