// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of x to int8, for the scalar variants of quantize_activation and `linear`.
// kernels/families/int8_x.h has the policies.
#pragma once

#include <math.h>

#include "kernels/families/elements.h"
#include "kernels/families/int8_x.h"

namespace qcts::scalar {
namespace {

// Returns NaN if an element is NaN.
[[maybe_unused]] float absolute_maximum(uint32_t dtype, const void* row, int64_t k) {
  float maximum = 0;
  for (int64_t i = 0; i < k; ++i) {
    const float magnitude = fabsf(load(dtype, row, i));
    if (!(magnitude <= maximum)) maximum = magnitude;
    if (maximum != maximum) break;
  }
  return maximum;
}

template <class Range>
int32_t int8_clamped(float value) {
  return static_cast<int32_t>(value < Range::kMin ? Range::kMin : value > Range::kMax ? Range::kMax : value);
}

template <class Range>
RowScale int8_row_scale(uint32_t dtype, const void* row, int64_t k, bool asymmetric) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < k; ++i) {
    const float x = load(dtype, row, i);
    if (x != x) return {x, 0};
    if (x < low) low = x;
    if (x > high) high = x;
  }
  const float span = asymmetric ? round_to(dtype, high - low) : (-low > high ? -low : high);
  constexpr float kSteps = Range::kMax - Range::kMin;
  float scale = round_to(dtype, span / (asymmetric ? kSteps : kSteps / 2));
  if (scale < 0x1p-23f) scale = 0x1p-23f;
  if (!asymmetric) return {scale, 0};
  const float zero_point = Range::kMin - nearbyintf(round_to(dtype, low / scale));
  if (zero_point != zero_point) return {scale, 0};
  return {scale, int8_clamped<Range>(zero_point)};
}

// Returns 0 for NaN.
template <class Range>
int8_t int8_code(float x, float reciprocal, int32_t zero_point) {
  const float code = nearbyintf(x * reciprocal) + static_cast<float>(zero_point);
  if (code != code) return 0;
  return static_cast<int8_t>(int8_clamped<Range>(code));
}

// Follows torchao 0.5.0 to 0.17.0 _int8_symm_per_token_reduced_range_quant.
// Codes are -127 .. 127, and the scale is at least 1e-5 in the dtype of x.
// Steps are rounded to bfloat16 if x has that dtype, and otherwise stay in float32.
[[maybe_unused]] RowScale quantize_row_127(uint32_t dtype, const void* row, int64_t k, int8_t* codes) {
  const float max = absolute_maximum(dtype, row, k);
  const float min = round_to(dtype, 1e-5f);
  float scale = round_to(dtype, max / 127.0f);
  if (scale < min) scale = min;
  const uint32_t steps_in = dtype == QCTS_BF16 ? QCTS_BF16 : QCTS_F32;
  const float reciprocal = round_to(steps_in, 1.0f / scale);
  for (int64_t i = 0; i < k; ++i) {
    const float code = nearbyintf(round_to(steps_in, load(dtype, row, i) * reciprocal));
    codes[i] = code != code ? 0 : static_cast<int8_t>(code < -127 ? -127 : code > 127 ? 127 : code);
  }
  return {scale, 0};
}

// Follows torchao 0.18.0 _apply_int8_act_asym_per_token_quant_dequant (8da4w).
// The codes are asymmetric, and every step is rounded to dtype.
// The minimum scale is the smallest normal number of dtype.
[[maybe_unused]] RowScale quantize_token(uint32_t dtype, const void* row, int64_t k, int8_t* codes) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < k; ++i) {
    const float x = load(dtype, row, i);
    if (x != x) {
      low = high = x;
      break;
    }
    if (x < low) low = x;
    if (x > high) high = x;
  }
  const float min = dtype == QCTS_F16 ? 0x1p-14f : 0x1p-126f;
  float scale = round_to(dtype, round_to(dtype, high - low) / 255.0f);
  if (scale < min) scale = min;
  const float zero_point = round_to(dtype, -128.0f - nearbyintf(round_to(dtype, low / scale)));
  RowScale chosen = {scale, 0};
  if (zero_point == zero_point)
    chosen.zero_point = static_cast<int32_t>(zero_point < -128 ? -128 : zero_point > 127 ? 127 : zero_point);
  const float reciprocal = round_to(dtype, 1.0f / scale);
  for (int64_t i = 0; i < k; ++i) {
    const float steps = nearbyintf(round_to(dtype, load(dtype, row, i) * reciprocal));
    const float code = round_to(dtype, steps + static_cast<float>(chosen.zero_point));
    codes[i] = code != code ? 0 : static_cast<int8_t>(code < -128 ? -128 : code > 127 ? 127 : code);
  }
  return chosen;
}

template <class Range>
RowScale quantize_row_by(RowScale chosen, uint32_t dtype, const void* row, int64_t k, int8_t* codes) {
  const float reciprocal = 1.0f / chosen.scale;
  for (int64_t i = 0; i < k; ++i)
    codes[i] = int8_code<Range>(load(dtype, row, i), reciprocal, chosen.zero_point);
  return chosen;
}

// Quantizes a row of p's x by p's policy, which is listed in kernels/families/int8_x.h.
template <class Range>
RowScale quantize_int8_row(const qcts_problem& p, const void* row, int8_t* codes) {
  if (std::strcmp(p.activation, "dyn_row_sym_127") == 0) return quantize_row_127(p.x_dtype, row, p.k, codes);
  const bool asymmetric = std::strcmp(p.activation, "dyn_row_asym") == 0;
  const RowScale chosen =
      has_given_scale(p.activation) ? given_scale(p) : int8_row_scale<Range>(p.x_dtype, row, p.k, asymmetric);
  return quantize_row_by<Range>(chosen, p.x_dtype, row, p.k, codes);
}

// Quantizes rows [first, last) of x, for quantize_activation.
template <class Range>
void quantize_int8_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<int8_t*>(out_plane(p, "qdata"));
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    store_row_scale(p, m, quantize_int8_row<Range>(p, row, qdata + m * p.k));
  }
}

}  // namespace
}  // namespace qcts::scalar
