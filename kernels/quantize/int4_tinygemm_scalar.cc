// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 quant_primitives.py: _choose_qparams_affine_tinygemm and _quantize_affine_tinygemm. Every step
// rounds to the weight's dtype, as tensor operations do.
#include <math.h>

#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

struct Group {
  float scale, zero;
};

// Int4OpaqueTensor.from_hp passes eps 1e-6. Int4TilePackedTo4dTensor.from_hp passes none, so it is the
// smallest normal number of the dtype, bfloat16 there.
float min_scale(const qcts_problem& p) {
  if (p.layout != nullptr && std::strcmp(p.layout, "tile_packed_4d") == 0) return 0x1p-126f;
  return round_to(p.w_dtype, 1e-6f);
}

Group choose(uint32_t dtype, float min_scale, const char* row, int64_t first, int64_t count) {
  float low = load(dtype, row, first), high = low;
  for (int64_t i = first; i < first + count; ++i) {
    const float value = load(dtype, row, i);
    if (!(value >= low)) low = value;
    if (!(value <= high)) high = value;
    if (value != value) return {value, value};
  }
  float scale = round_to(dtype, round_to(dtype, high - low) / 15.0f);
  if (scale < min_scale) scale = min_scale;
  return {scale, round_to(dtype, low + round_to(dtype, scale * 8.0f))};
}

// A NaN, which only a non-finite group gives, becomes 0.
uint8_t code_of(uint32_t dtype, float value, float low, float scale) {
  const float steps = nearbyintf(round_to(dtype, round_to(dtype, value - low) / scale));
  if (!(steps > 0)) return 0;
  return static_cast<uint8_t>(steps < 15 ? steps : 15);
}

void quantize_tinygemm(const qcts_problem& p, int64_t first, int64_t last) {
  auto* pairs = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  void* scale_and_zero = qcts::out_plane(p, "scale_and_zero");
  const float min = min_scale(p);
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    for (int64_t k = 0; k < p.k; k += p.group) {
      const Group group = choose(p.w_dtype, min, row, k, p.group);
      const float low = round_to(p.w_dtype, group.zero - round_to(p.w_dtype, group.scale * 8.0f));
      for (int64_t i = k; i < k + p.group; i += 2) {
        const uint8_t even = code_of(p.w_dtype, load(p.w_dtype, row, i), low, group.scale);
        const uint8_t odd = code_of(p.w_dtype, load(p.w_dtype, row, i + 1), low, group.scale);
        pairs[(n * p.k + i) / 2] = static_cast<uint8_t>(even << 4 | odd);
      }
      const int64_t place = 2 * (k / p.group * p.n + n);
      store(p.w_dtype, scale_and_zero, place, group.scale);
      store(p.w_dtype, scale_and_zero, place + 1, group.zero);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int4_tinygemm_scalar =
    qcts::exact_rows<qcts_kernel_quantize_int4_tinygemm_scalar, quantize_tinygemm>(
        QCTS_OP_QUANTIZE, "int4_tinygemm", "scalar",
        "two passes per group: range, then codes; bound by one division and three roundings per element");
