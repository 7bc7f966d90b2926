// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 Int4PreshuffledTensor.from_hp for float8 x, which is MSLK's quantize_int4_preshuffle: a row
// becomes float8 with one float32 scale (quantize_fp8_row), and these float8 numbers become int4 with a scale
// a group, max(max |v|, 1e-6) / 8, which divides unrounded and is then stored as e4m3. A step that is NaN
// gets code 0. Codes are signed, the even k in the low nibble.
#include <math.h>

#include "kernels/families/entry.h"
#include "kernels/families/float8_scales.h"
#include "kernels/scalar/blocks.h"

namespace {

using namespace qcts::scalar;
using qcts::SmallFloat;

float row_scale(const qcts::FloatRows& from, const char* row, int64_t k) {
  qcts::Float8Task task = {};
  task.format = SmallFloat::e4m3;
  task.scale_dtype = QCTS_F32;
  task.min = 1.0f / 512;
  task.max = NAN;
  return qcts::float8_scale(task, largest_of(from.dtype, row, k));
}

// A float8 number of the row.
float number(const qcts::FloatRows& from, const char* row, int64_t k, float scale) {
  return e4m3fn_to_f32(qcts::float8_code(SmallFloat::e4m3, load(from.dtype, row, k), scale));
}

uint8_t nibble(float value, float scale) {
  const float steps = nearbyintf(value / scale);
  if (steps != steps) return 0;
  return static_cast<uint8_t>(static_cast<int>(steps < -8 ? -8 : steps > 7 ? 7 : steps) & 15);
}

void quantize_int4_e4m3(const qcts_problem& p, int64_t first, int64_t last) {
  auto* pairs = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  auto* scales = static_cast<uint8_t*>(qcts::out_plane(p, "scale"));
  const qcts::FloatRows from = qcts::float_rows(p);
  for (int64_t n = first; n < last; ++n) {
    const char* row = from.row(n);
    const float whole = row_scale(from, row, p.k);
    store(QCTS_F32, qcts::out_plane(p, "row_scale"), n, whole);
    for (int64_t g = 0; g < p.k / p.group; ++g) {
      const int64_t begin = g * p.group, end = begin + p.group;
      float largest = 0;
      for (int64_t k = begin; k < end; ++k) {
        const float magnitude = fabsf(number(from, row, k, whole));
        if (!(magnitude <= largest) && largest == largest) largest = magnitude;
      }
      const float scale = (largest < 1e-6f ? 1e-6f : largest) / 8;
      scales[g * p.n + n] = qcts::small_float_code(SmallFloat::e4m3, scale);
      for (int64_t k = begin; k < end; k += 2)
        pairs[(n * p.k + k) / 2] = static_cast<uint8_t>(nibble(number(from, row, k, whole), scale) |
                                                        nibble(number(from, row, k + 1, whole), scale) << 4);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int4_e4m3_scalar =
    qcts::exact_rows<qcts_kernel_quantize_int4_e4m3_scalar, quantize_int4_e4m3>(
        QCTS_OP_QUANTIZE, "int4_e4m3", "scalar",
        "three passes: the row's scale, a group's, then codes; bound by two divisions per element");
