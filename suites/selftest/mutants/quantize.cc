// SPDX-License-Identifier: BSD-3-Clause
// quantize of the three families, scalar, with the faults q8_*, q4_* and qf8_*. Correct if none is planted.
// kernels/quantize names the sources of the recipes.
#include <algorithm>
#include <cmath>

#include "kernels/abi/problem.h"
#include "kernels/families/checks.h"
#include "kernels/families/elements.h"
#include "suites/selftest/mutants/faults.h"

namespace qcts::mutants {
namespace {

using scalar::load;
using scalar::round_to;
using enum Fault;

struct Row {
  const qcts_problem& p;
  const char* data;
  float operator[](int64_t k) const { return load(p.w_dtype, data, k); }
};

Row row_of(const qcts_problem& p, int64_t n) {
  const bool dense = planted(q8_rows_contiguous) ||
                     (planted(q8_aligned_rows_dense) && reinterpret_cast<uintptr_t>(p.x) % 16 == 0);
  const int64_t ld = dense ? p.k * dtype_bytes(p.w_dtype) : p.ldx_bytes;
  if (planted(q8_rows_in_16_bits)) n &= 0xFFFF;
  return {p, static_cast<const char*>(p.x) + n * ld};
}

float absmax(const Row& row, bool drops_tail, bool skips_nan) {
  float most = 0;
  const int64_t k = drops_tail && row.p.k > 8 ? row.p.k / 8 * 8 : row.p.k;
  for (int64_t i = 0; i < k; ++i) {
    const float value = std::fabs(row[i]);
    if (value != value && skips_nan) continue;
    if (!(value <= most)) most = value;
    if (most != most) break;
  }
  return most;
}

void* out(const qcts_problem& p, const char* name) { return plane_data(p.out_planes, p.n_out_planes, name); }

float to_integer(float value, Fault half_away, Fault half_up, Fault truncates) {
  if (planted(half_away)) return std::round(value);
  if (planted(half_up)) return std::floor(value + 0.5f);
  if (planted(truncates)) return std::trunc(value);
  return std::nearbyint(value);
}

int8_t int8_code(float steps) {
  const float rounded = to_integer(steps, q8_half_away, q8_half_up, q8_truncates);
  const int least = planted(q8_clamps_at_minus_127) ? -127 : -128;
  if (rounded != rounded) return planted(q8_nan_becomes_minus_128) ? -128 : 0;
  return static_cast<int8_t>(std::clamp(rounded, static_cast<float>(least), 127.0f));
}

// Returns the number of codes of row n that are written.
int64_t written_codes(const qcts_problem& p, int64_t n) {
  if (planted(q8_codes_past_4096_unwritten)) return std::min<int64_t>(p.k, 4096);
  const bool small = p.n * p.k <= 4 << 20;
  if (planted(q8_threads_lose_tail_unclaimed) && p.threads > 1 && small && n == p.n - 1) return p.k - 1;
  return p.k;
}

qcts_status run_int8(const qcts_problem* problem) {
  if (check_run(quantize_int8_row, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  for (int64_t n = 0; n < p.n; ++n) {
    const Row row = row_of(p, n);
    const float most = absmax(row, planted(q8_absmax_drops_tail), planted(q8_absmax_skips_nan));
    float scale = most / (planted(q8_divides_by_127) ? 127.0f : 127.5f);
    if (!planted(q8_scale_unrounded)) scale = round_to(p.w_dtype, scale);
    if (!planted(q8_no_least_scale) && scale < 0x1p-23f) scale = 0x1p-23f;
    const float reciprocal = 1.0f / scale;
    for (int64_t k = 0; k < written_codes(p, n); ++k)
      static_cast<int8_t*>(out(p, "qdata"))[n * p.k + k] =
          int8_code(planted(q8_true_division) ? row[k] / scale : row[k] * reciprocal);
    scalar::store(QCTS_F32, out(p, "scale"), n, scale);
    if (!planted(q8_zero_point_unwritten)) static_cast<int8_t*>(out(p, "zero_point"))[n] = 0;
  }
  return QCTS_OK;
}

float step(const qcts_problem& p, float value) {
  return planted(q4_steps_in_float32) ? value : round_to(p.w_dtype, value);
}

uint8_t int4_code(const qcts_problem& p, float value, float low, float scale) {
  const float distance = step(p, value - low);
  const float steps = step(p, planted(q4_reciprocal) ? distance * step(p, 1.0f / scale) : distance / scale);
  const float rounded = planted(q4_half_away) ? std::round(steps) : std::nearbyint(steps);
  if (!(rounded > 0)) return 0;
  return static_cast<uint8_t>(std::min(rounded, planted(q4_code_15_unused) ? 14.0f : 15.0f));
}

void int4_group(const qcts_problem& p, int64_t n, int64_t first, float least) {
  const Row row = row_of(p, n);
  float low = row[first], high = low;
  bool nan = false;
  for (int64_t k = first; k < first + p.group; ++k) {
    if (!(row[k] >= low)) low = row[k];
    if (!(row[k] <= high)) high = row[k];
    nan = nan || row[k] != row[k];
  }
  if (planted(q4_range_holds_zero)) low = std::min(low, 0.0f), high = std::max(high, 0.0f);
  const float nothing = __builtin_nanf("");
  float scale = nan ? nothing : round_to(p.w_dtype, step(p, high - low) / 15.0f);
  if (scale < least) scale = least;
  float zero = nan ? nothing : round_to(p.w_dtype, low + step(p, scale * 8.0f));
  const float from = planted(q4_low_from_data) ? low : step(p, zero - step(p, scale * 8.0f));
  if (planted(q4_zero_is_minimum)) zero = low;
  for (int64_t k = first; k < first + p.group; k += 2) {
    uint8_t even = int4_code(p, row[k], from, scale), odd = int4_code(p, row[k + 1], from, scale);
    if (planted(q4_nibbles_swapped)) std::swap(even, odd);
    static_cast<uint8_t*>(out(p, "qdata"))[(n * p.k + k) / 2] = static_cast<uint8_t>(even << 4 | odd);
  }
  const int64_t place = 2 * (first / p.group * p.n + n);
  scalar::store(p.w_dtype, out(p, "scale_and_zero"), place, scale);
  scalar::store(p.w_dtype, out(p, "scale_and_zero"), place + 1, zero);
}

qcts_status run_int4(const qcts_problem* problem) {
  if (check_run(quantize_int4_tinygemm, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  const bool tiled = p.layout != nullptr && std::strcmp(p.layout, "tile_packed_4d") == 0;
  const float least = tiled != planted(q4_other_layouts_floor) ? 0x1p-126f : round_to(p.w_dtype, 1e-6f);
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; k += p.group) int4_group(p, n, k, least);
  return QCTS_OK;
}

uint8_t fp8_half_away(float value) {
  const uint8_t down = scalar::clamped_f32_to_e4m3fn(std::copysign(0.0f, value));
  uint8_t code = down;
  // Finds the largest code that is not above the value, then takes the nearer one. The distances are exact.
  while ((code & 0x7F) < 0x7E && std::fabs(scalar::e4m3fn_to_f32(code + 1)) <= std::fabs(value)) ++code;
  if ((code & 0x7F) >= 0x7E) return code;
  const double below = std::fabs(value) - std::fabs(static_cast<double>(scalar::e4m3fn_to_f32(code)));
  const double above = std::fabs(static_cast<double>(scalar::e4m3fn_to_f32(code + 1))) - std::fabs(value);
  return below >= above ? code + 1 : code;
}

uint8_t fp8_code(float value) {
  if (value != value) return scalar::clamped_f32_to_e4m3fn(value);
  const float sign = std::copysign(1.0f, value);
  if (std::fabs(value) >= 464.0f && planted(qf8_no_clamp)) return sign < 0 ? 0xFF : 0x7F;
  value = std::clamp(value, -448.0f, 448.0f);
  if (planted(qf8_flushes_subnormal_codes) && std::fabs(value) < 0x1p-6f) value = 0.0f * sign;
  if (planted(qf8_drops_sign_of_zero) && value == 0) value = 0.0f;
  return planted(qf8_half_away) ? fp8_half_away(value) : scalar::clamped_f32_to_e4m3fn(value);
}

qcts_status run_fp8(const qcts_problem* problem) {
  if (check_run(quantize_fp8_row, problem) != QCTS_OK) return QCTS_INVALID;
  const qcts_problem& p = *problem;
  for (int64_t n = 0; n < p.n; ++n) {
    const Row row = row_of(p, n);
    float scale = round_to(p.w_dtype, absmax(row, false, false) / 448.0f);
    if (planted(qf8_least_scale) && scale == 0) scale = 0x1p-126f;
    const float reciprocal = 1.0f / scale;
    for (int64_t k = 0; k < p.k; ++k)
      static_cast<uint8_t*>(out(p, "qdata"))[n * p.k + k] =
          fp8_code(planted(qf8_reciprocal) ? row[k] * reciprocal : row[k] / scale);
    scalar::store(QCTS_F32, out(p, "scale"), n, scale);
  }
  return QCTS_OK;
}

}  // namespace

const qcts_kernel quantize_int8_row =
    exact_kernel(QCTS_OP_QUANTIZE, "int8_row", supports_problem<quantize_int8_row>, run_int8);
const qcts_kernel quantize_int4_tinygemm =
    exact_kernel(QCTS_OP_QUANTIZE, "int4_tinygemm", supports_problem<quantize_int4_tinygemm>, run_int4);
const qcts_kernel quantize_fp8_row =
    exact_kernel(QCTS_OP_QUANTIZE, "fp8_row", supports_problem<quantize_fp8_row>, run_fp8);

}  // namespace qcts::mutants
