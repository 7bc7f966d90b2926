// SPDX-License-Identifier: BSD-3-Clause
// Float8, float6 and float4 codes of a block: codes.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/abi/problem.h"
#include "kernels/families/elements.h"
#include "reference/numerics/block_scales.h"
#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"
#include "suites/selftest/mutants/codes.h"
#include "suites/selftest/mutants/faults.h"

namespace qcts::mutants {
namespace {

using enum Fault;

enum class MxMode { floor, ceil, even, rceil };

struct MxFormat {
  DType type;
  int max_exponent;
};

bool has_element(const qcts_problem& p, uint32_t dtype) { return scheme_params(p).element_dtype == dtype; }

MxFormat mx_format(const qcts_problem& p) {
  if (mx_pairs(p)) return {DType::float4_e2m1fn_x2, 2};
  if (has_element(p, QCTS_F6_E2M3)) return {DType::float6_e2m3fn, 2};
  if (has_element(p, QCTS_F6_E3M2)) return {DType::float6_e3m2fn, 4};
  if (has_element(p, QCTS_F8_E5M2)) return {DType::float8_e5m2, 15};
  return {DType::float8_e4m3fn, 8};
}

MxMode mx_mode(const qcts_problem& p) {
  if (planted(amx_floor_always) || planted(lmd_x_by_floor)) return MxMode::floor;
  const uint32_t rounding = scheme_params(p).scale_rounding;
  if (rounding == QCTS_SCALE_RCEIL) return planted(qmx_even_for_rceil) ? MxMode::even : MxMode::rceil;
  if (rounding == QCTS_SCALE_CEIL) return MxMode::ceil;
  return rounding == QCTS_SCALE_EVEN ? MxMode::even : MxMode::floor;
}

bool is_wide(DType type) { return type == DType::float8_e4m3fn || type == DType::float8_e5m2; }

int scale_by_exponent(const MxFormat& format, MxMode mode, float largest) {
  if (largest != largest) return planted(qmx_nan_scale_is_largest) ? 254 : 255;
  if (largest == 0 && planted(qmx_zero_block_scale_one)) return 127;
  int64_t bits = std::bit_cast<uint32_t>(largest);
  if (mode == MxMode::even && !planted(qmx_even_loses_carry))
    bits += int64_t{1} << (23 - float_format(format.type).mantissa_bits - 1);
  int exponent = static_cast<int>(bits >> 23 & 0xFF) - 127;
  if (mode == MxMode::ceil && (planted(qmx_ceil_at_powers) || (bits & 0x7FFFFF) != 0)) ++exponent;
  return std::clamp(exponent - format.max_exponent, -127, 128) + 127;
}

float rceil_exponent(float ratio) {
  if (!planted(qmx_rceil_by_bits) || ratio == 0)
    return std::ceil(static_cast<float>(std::log2(static_cast<double>(ratio))));
  int exponent = 0;
  const float fraction = std::frexp(ratio, &exponent);
  return static_cast<float>(fraction == 0.5f ? exponent - 1 : exponent);
}

// The byte of the scale, and the factor that the values are multiplied by.
int scale_by_rceil(float largest, float max, float& factor) {
  const float ratio = largest / max;
  if (ratio != ratio) {
    factor = ratio;
    return 255;
  }
  if (std::isinf(ratio)) {
    factor = 0x1p-127f;
    return 254;
  }
  const int byte = static_cast<int>(std::clamp(rceil_exponent(ratio), -127.0f, 127.0f)) + 127;
  factor = byte > 0 ? std::ldexp(1.0f, 127 - byte) : 1.0f;
  return byte;
}

// e2m1, ties away from zero.
uint8_t fp4_half_away(float value) {
  uint8_t code = 0;
  for (uint8_t next = 1; next < 8; ++next) {
    const float middle = (scalar::small_to_f32(next, 2, 1) + scalar::small_to_f32(next - 1u, 2, 1)) / 2;
    if (std::fabs(value) >= middle) code = next;
  }
  return static_cast<uint8_t>(code | (std::signbit(value) ? 8 : 0));
}

uint8_t mx_code(const MxFormat& format, float value) {
  const float max = static_cast<float>(float_format(format.type).max);
  if (is_wide(format.type)) {
    const float beyond = format.type == DType::float8_e5m2 ? 61440.0f : 464.0f;
    if (planted(qmx_no_clamp) && std::fabs(value) >= beyond)
      return static_cast<uint8_t>((std::signbit(value) ? 0x80 : 0) |
                                  (format.type == DType::float8_e5m2 ? 0x7C : 0x7F));
    if (value == value) value = std::clamp(value, -max, max);
    return static_cast<uint8_t>(encode_float(format.type, value));
  }
  const bool six = format.type != DType::float4_e2m1fn_x2;
  if (planted(qmx_fp4_half_away) && !six && value == value) return fp4_half_away(value);
  const float least_normal = format.type == DType::float6_e3m2fn ? 0.25f : 1.0f;
  if (planted(qmx_fp6_flushes_subnormals) && six && std::fabs(value) < least_normal)
    value = std::copysign(0.0f, value);
  const uint8_t code = floatx_code(format.type, value);
  return planted(qmx_minus_zero_lost) && code == (six ? 0x20 : 8) ? 0 : code;
}

float bound_at(const qcts_problem& p, const void* given) {
  double value;
  std::memcpy(&value, given, sizeof value);
  return scalar::round_to(p.x_dtype, static_cast<float>(value));
}

}  // namespace

bool mx_pairs(const qcts_problem& p) { return has_element(p, QCTS_F4_E2M1_X2); }

uint8_t mx_block(const qcts_problem& p, std::span<const float> values, bool last, uint8_t* codes) {
  const MxFormat format = mx_format(p);
  const MxMode mode = mx_mode(p);
  const float largest =
      largest_magnitude(planted(qmx_last_block_half_seen) && last ? values.first(16) : values);
  const float max = static_cast<float>(float_format(format.type).max);
  float factor = 1;
  int byte =
      mode == MxMode::rceil ? scale_by_rceil(largest, max, factor) : scale_by_exponent(format, mode, largest);
  if (planted(qmx_least_scale_byte_1)) byte = std::max(byte, 1);
  const float divisor = std::max(std::bit_cast<float>(byte << 23), 0x1p-126f);
  for (size_t i = 0; i < values.size(); ++i) {
    float value = mode == MxMode::rceil ? mul_x86(values[i], factor) : div_x86(values[i], divisor);
    if (mode == MxMode::rceil && value == value) value = std::clamp(value, -max, max);
    codes[i] = mx_code(format, value);
  }
  return static_cast<uint8_t>(byte);
}

float mx_value(const qcts_problem& p, uint8_t code) {
  if (mx_pairs(p)) {
    if (planted(dmx_fp4_subnormal_is_zero) && (code & 7) == 1) return 0;
    return planted(dmx_fp4_minus_zero) && code == 8 ? 0 : scalar::small_to_f32(code, 2, 1);
  }
  if (has_element(p, QCTS_F6_E2M3)) {
    if (planted(dmx_fp6_subnormals_normal) && (code & 0x1F) < 8 &&
        (code & 0x1F) != 0)  // 0.5 and up, with an exponent that e2m3 does not have
      return (code & 0x20 ? -0.5f : 0.5f) * (1 + static_cast<float>(code & 7) / 8);
    return scalar::small_to_f32(code, 2, 3);
  }
  if (has_element(p, QCTS_F6_E3M2)) return scalar::small_to_f32(code, 3, 2);
  if (!has_element(p, QCTS_F8_E5M2)) return scalar::e4m3fn_to_f32(code);
  if (planted(dmx_e5m2_infinity_finite) && (code & 0x7F) == 0x7C) return code & 0x80 ? -65536.0f : 65536.0f;
  return scalar::e5m2_to_f32(code);
}

uint8_t nvfp4_block(std::span<const float> values, const float* whole, uint8_t* codes) {
  float scale = largest_magnitude(values) / 6.0f;
  if (whole != nullptr && !planted(qnv_whole_ignored)) scale = div_x86(scale, *whole);
  if (scale < 0x1p-6f && !planted(qnv_no_least_scale)) scale = 0x1p-6f;
  const bool beyond = scale > 448.0f;
  if (beyond) scale = 448.0f;
  uint8_t byte = static_cast<uint8_t>(encode_float(DType::float8_e4m3fn, scale));
  if (beyond && planted(qnv_no_largest_scale)) byte = 0x7F;
  float stored = scalar::e4m3fn_to_f32(byte);
  if ((byte & 0x7F) == 0x7F) stored = std::bit_cast<float>(byte & 0x80 ? 0xFFF00000u : 0x7FF00000u);
  if (planted(qnv_scale_unrounded)) stored = scale;
  const float factor =
      div_x86(whole != nullptr && !planted(qnv_whole_ignored) ? div_x86(1.0f, *whole) : 1.0f, stored);
  for (size_t i = 0; i < values.size(); ++i) {
    float value = mul_x86(values[i], factor);
    if (planted(qnv_divides)) value = div_x86(values[i], whole != nullptr ? *whole * stored : stored);
    if (value == value) value = std::clamp(value, -6.0f, 6.0f);
    codes[i] = floatx_code(DType::float4_e2m1fn_x2, value);
  }
  return byte;
}

float nvfp4_whole(std::span<const float> values) {
  const float whole = largest_magnitude(values) / (448.0f * 6.0f);
  return whole == 0 && planted(qnv_zero_weight_scale_one) ? 1.0f : whole;
}

float fp8_row(const qcts_problem& p, std::span<const float> values, uint8_t* codes) {
  float largest = largest_magnitude(values);
  const void* lower = plane_data(p.planes, p.n_planes, "hp_value_lb");
  const void* upper = plane_data(p.planes, p.n_planes, "hp_value_ub");
  if (lower != nullptr) largest = std::max(largest, bound_at(p, lower));
  if (upper != nullptr) largest = std::min(largest, bound_at(p, upper));
  float scale = largest / 448.0f;
  if (!planted(af8_scale_unrounded)) scale = scalar::round_to(p.x_dtype, scale);
  if (scale == 0 && planted(af8_zero_row_scale_one)) scale = 1;
  for (size_t i = 0; i < values.size(); ++i) {
    const float steps = values[i] / scale;
    codes[i] = float8_code(DType::float8_e4m3fn, values[i], scale);
    if (planted(af8_reciprocal) && steps == steps)
      codes[i] = float8_code(DType::float8_e4m3fn, values[i] * (1.0f / scale), 1);
    if (planted(af8_no_clamp) && std::fabs(steps) >= 464.0f) codes[i] = steps < 0 ? 0xFF : 0x7F;
  }
  return scale;
}

}  // namespace qcts::mutants
