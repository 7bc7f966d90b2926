// TinyQ 006b7b9: W8A32LinearLayer.quantize (max|w| / 127 in double, stored as float; code = round(w / s),
// clamped) and W8A16LinearLayer.quantize (scale and quotient rounded to the weight's dtype, no clamp: 128
// wraps to -128).
#include <math.h>

#include <cstring>

#include "kernels/entry.h"
#include "kernels/scalar/elements.h"

namespace {

using qcts::scalar::load;
using qcts::scalar::round_to;

struct Task {
  const qcts_problem* problem;
  bool clamped;  // W8A32
  int8_t* codes;
  void* scales;
  char* zero_points;  // W8A32
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

// The low byte of the int32 conversion, whose answer to what it cannot hold is 0x80000000.
int8_t low_byte(float rounded) {
  const bool fits = rounded >= -2147483648.0f && rounded < 2147483648.0f;
  return fits ? static_cast<int8_t>(static_cast<uint32_t>(static_cast<int32_t>(rounded)) & 0xFF) : 0;
}

int8_t clamped_code(float w, float scale) {
  const float rounded = nearbyintf(w / scale);
  if (rounded != rounded) return 0;
  return static_cast<int8_t>(rounded > 127 ? 127 : rounded < -128 ? -128 : rounded);
}

void quantize_rows(void* context, int64_t first, int64_t last) {
  const Task& task = *static_cast<const Task*>(context);
  const qcts_problem& p = *task.problem;
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    const float maximum = absolute_maximum(p.w_dtype, row, p.k);
    const float scale = task.clamped ? static_cast<float>(static_cast<double>(maximum) / 127)
                                     : round_to(p.w_dtype, maximum / 127.0f);
    for (int64_t i = 0; i < p.k; ++i) {
      const float w = load(p.w_dtype, row, i);
      task.codes[n * p.k + i] =
          task.clamped ? clamped_code(w, scale) : low_byte(nearbyintf(round_to(p.w_dtype, w / scale)));
    }
    qcts::scalar::store(p.w_dtype, task.scales, n, scale);
    if (task.clamped) std::memset(task.zero_points + 4 * n, 0, 4);
  }
}

qcts_status run(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_quantize_tinyq_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  const auto data = [&](const char* name) {
    return qcts::plane_data(problem->out_planes, problem->n_out_planes, name);
  };
  Task task = {problem, std::strcmp(problem->scheme_name, "tinyq_w8a32") == 0,
               static_cast<int8_t*>(data("int8_weights")), data("scales"),
               static_cast<char*>(data("zero_points"))};
  qcts::parallel_for(problem->threads, problem->n, 1, quantize_rows, &task);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_tinyq_scalar =
    qcts::exact_entry(QCTS_OP_QUANTIZE, "tinyq", "scalar",
                      "two passes a row: absolute maximum, then one division a code; bound by the division",
                      {qcts::supports_problem<qcts_kernel_quantize_tinyq_scalar>, run});
