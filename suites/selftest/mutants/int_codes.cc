// SPDX-License-Identifier: BSD-3-Clause
// Integer codes of a row or a group: codes.h.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/abi/problem.h"
#include "kernels/families/elements.h"
#include "suites/selftest/mutants/codes.h"
#include "suites/selftest/mutants/faults.h"

namespace qcts::mutants {
namespace {

using scalar::load;
using scalar::round_to;
using enum Fault;

struct Range {
  float low, high;
};

Range int_range(std::span<const float> values) {
  const bool bare = planted(a8_range_without_zero) || planted(qix_range_without_zero);
  Range range = bare ? Range{values[0], values[0]} : Range{0, 0};
  for (const float value : values) {
    if (value != value) {
      if (planted(a8_absmax_skips_nan) || planted(w8_absmax_skips_nan)) continue;
      return {value, value};
    }
    range = {std::min(range.low, value), std::max(range.high, value)};
  }
  return range;
}

float symmetric_scale(const IntRecipe& r, Range range) {
  if (r.mapping == Mapping8::no_clipping && !planted(qix_no_clipping_as_symmetric)) {
    const float by_low = round_to(r.dtype, range.low / static_cast<float>(r.low));
    const float by_high = round_to(r.dtype, range.high / static_cast<float>(r.high));
    return by_low > by_high ? by_low : by_high;
  }
  float half = static_cast<float>(r.high - r.low) / 2;
  if (planted(a8_divides_by_127) || planted(w8_divides_by_127) || planted(qix_divides_by_largest))
    half = static_cast<float>(r.high);
  if (half == 0) half = 0.5f;  // one bit
  const float most = range.low != range.low       ? range.low
                     : planted(a8_max_for_absmax) ? range.high
                                                  : std::max(-range.low, range.high);
  return round_to(r.dtype, most / half);
}

float min_scale(const IntRecipe& r) {
  if (planted(a8_no_least_scale)) return 0;
  if (planted(a8_least_scale_of_v1)) return round_to(r.dtype, 1e-5f);
  if (planted(ai_least_scale_of_int8) || planted(qix_least_scale_of_int8)) return 0x1p-23f;
  return r.least;
}

float to_steps(float value) {
  if (planted(a8_half_away) || planted(w8_half_away)) return std::round(value);
  return std::nearbyint(value);
}

}  // namespace

IntRecipe int8_recipe(const qcts_problem& p) {
  const bool asymmetric = p.activation != nullptr && std::strcmp(p.activation, "dyn_row_asym") == 0;
  return {asymmetric ? Mapping8::asymmetric : Mapping8::symmetric, -128, 127, 0x1p-23f, p.x_dtype, QCTS_F32};
}

IntRecipe token_recipe(const qcts_problem& p) {
  return {planted(da_x_symmetric) ? Mapping8::symmetric : Mapping8::asymmetric,
          -128,
          127,
          p.x_dtype == QCTS_F16 ? 0x1p-14f : 0x1p-126f,
          p.x_dtype,
          p.x_dtype};
}

IntScale choose_int(const IntRecipe& r, std::span<const float> values) {
  const Range range = int_range(values);
  const float least = min_scale(r);
  IntScale chosen;
  if (r.mapping != Mapping8::asymmetric) {
    chosen.scale = symmetric_scale(r, range);
    if (chosen.scale < least) chosen.scale = least;
  } else {
    const float width = round_to(r.dtype, range.high - range.low);
    chosen.scale = width / static_cast<float>(r.high - r.low);
    if (!planted(ai_scale_unrounded) && !planted(da_row_scale_unrounded))
      chosen.scale = round_to(r.dtype, chosen.scale);
    if (chosen.scale < least) chosen.scale = least;
    const float below = round_to(r.dtype, range.low / chosen.scale);
    const float steps = planted(a8_zero_point_truncates) ? std::trunc(below) : std::nearbyint(below);
    const float zero = round_to(r.dtype, static_cast<float>(r.low) - steps);
    const float clamped = std::clamp(zero, static_cast<float>(r.low), static_cast<float>(r.high));
    chosen.zero = zero != zero ? 0 : static_cast<int>(clamped);
    if (planted(a8_zero_point_one_up)) chosen.zero = std::min(chosen.zero + 1, r.high);
  }
  return chosen;
}

bool is_given(const qcts_problem& p) { return std::strncmp(p.activation, "static_", 7) == 0; }

IntScale scale_of_x(const IntRecipe& r, const qcts_problem& p, std::span<const float> row) {
  if (!is_given(p) || planted(a8_given_scale_ignored) || planted(w8_given_scale_ignored))
    return choose_int(r, row);
  IntScale given;
  given.scale = load(QCTS_F32, plane_data(p.planes, p.n_planes, "act_quant_scale"), 0);
  if (planted(w8_given_scale_floored)) given.scale = std::max(given.scale, 0x1p-23f);
  const void* zero = plane_data(p.planes, p.n_planes, "act_quant_zero_point");
  if (zero != nullptr && !planted(a8_given_zero_ignored) && !planted(w8_given_zero_ignored))
    given.zero = *static_cast<const int8_t*>(zero);
  return given;
}

int int_code(const IntRecipe& r, IntScale chosen, float value) {
  const uint32_t common = r.dtype == r.scale_dtype ? r.dtype : static_cast<uint32_t>(QCTS_F32);
  if (planted(a8_x_as_bf16)) value = round_to(QCTS_BF16, value);
  float reciprocal = 1.0f / chosen.scale;
  if (!planted(ai_reciprocal_unrounded)) reciprocal = round_to(r.scale_dtype, reciprocal);
  const float steps =
      to_steps(planted(a8_true_division) ? value / chosen.scale : round_to(common, value * reciprocal));
  const float code = round_to(common, steps + static_cast<float>(chosen.zero));
  if (code != code) return 0;
  float low = static_cast<float>(r.low), high = static_cast<float>(r.high);
  if (planted(a8_clamps_at_minus_127) || planted(w8_clamps_at_minus_127)) low = -127;
  if (planted(qix_clamps_at_eight_bits)) low = -128, high = 127;
  return static_cast<int>(std::clamp(code, low, high));
}

std::vector<float> floats(uint32_t dtype, const void* data, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = load(dtype, data, i);
  return values;
}

std::vector<float> rows_of_x(const qcts_problem& p) {
  const bool weight = p.op == QCTS_OP_QUANTIZE;
  const uint32_t dtype = weight ? p.w_dtype : p.x_dtype;
  const bool dense = planted(a8_ldx_ignored) || (planted(a8_four_rows_dense) && p.m == 4) ||
                     ((planted(a8_aligned_rows_dense) || planted(w8_aligned_rows_dense)) &&
                      reinterpret_cast<uintptr_t>(p.x) % 16 == 0);
  const int64_t ld = dense ? p.k * dtype_bytes(dtype) : p.ldx_bytes;
  std::vector<float> all;
  for (int64_t row = 0; row < (weight ? p.n : p.m); ++row) {
    const int64_t from = planted(a8_rows_in_16_bits) ? row & 0xFFFF : row;
    const std::vector<float> one = floats(dtype, static_cast<const char*>(p.x) + from * ld, p.k);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

}  // namespace qcts::mutants
