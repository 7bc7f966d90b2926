// SPDX-License-Identifier: BSD-3-Clause
// Converts elements in plain C++. The results are exact to the bit, without hardware conversion instructions.
// The scalar variants use these functions, and so does work that a family does once per block or tensor.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::scalar {
namespace {

// Converts IEEE 754 binary16 to binary32 without rounding.
[[maybe_unused]] float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 31, fraction = half & 0x3FF;
  if (exponent == 31) return __builtin_bit_cast(float, sign | 0x7F800000u | fraction << 13);
  if (exponent != 0) return __builtin_bit_cast(float, sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

// Rounds to nearest even.
// Below 2^-14, the processor's addition of 0.5 does the rounding:
// the last bit of a float near 0.5 is 2^-24, the smallest subnormal of binary16.
[[maybe_unused]] uint16_t f32_to_f16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00;
  // 65520, the tie above the largest half, and all larger magnitudes
  if (magnitude >= 0x477FF000) return sign | 0x7C00;
  if (magnitude < 0x38800000) {
    const float sum = __builtin_bit_cast(float, magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, sum) - 0x3F000000));
  }
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

[[maybe_unused]] float bf16_to_f32(uint16_t value) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(value) << 16);
}

// Rounds to nearest even. Every NaN becomes the quiet NaN.
[[maybe_unused]] uint16_t f32_to_bf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// Converts e4m3fn: four exponent bits with bias 7, three fraction bits, no infinity.
// 0x7F and 0xFF are NaN (OCP 8-bit floating point specification 1.0).
[[maybe_unused]] float e4m3fn_to_f32(uint8_t code) {
  const uint32_t exponent = code >> 3 & 15, fraction = code & 7;
  const bool negative = (code & 0x80) != 0;
  if ((code & 0x7F) == 0x7F) return __builtin_bit_cast(float, negative ? 0xFFC00000u : 0x7FC00000u);
  const float magnitude = exponent == 0 ? static_cast<float>(fraction) * 0x1p-9f
                                        : __builtin_bit_cast(float, (exponent + 120) << 23 | fraction << 20);
  return negative ? -magnitude : magnitude;
}

// Converts e5m2, the upper half of a binary16: five exponent bits with bias 15, two fraction bits.
[[maybe_unused]] float e5m2_to_f32(uint8_t code) { return f16_to_f32(static_cast<uint16_t>(code << 8)); }

// Returns 2^(code - 127). Code 0 is 2^-127, a subnormal; code 255 is NaN (OCP Microscaling Formats 1.0).
[[maybe_unused]] float e8m0_to_f32(uint8_t code) {
  if (code == 255) return __builtin_bit_cast(float, 0x7FC00000u);
  return __builtin_bit_cast(float, code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23);
}

// Converts a small format without infinity and NaN (OCP Microscaling Formats 1.0).
// The format has a sign bit, `exponent_bits` with bias 2^(exponent_bits - 1) - 1, and `fraction_bits`.
[[maybe_unused]] float small_to_f32(uint32_t code, int exponent_bits, int fraction_bits) {
  const uint32_t fraction = code & ((1u << fraction_bits) - 1);
  const uint32_t exponent = code >> fraction_bits & ((1u << exponent_bits) - 1);
  const uint32_t bias = (1u << (exponent_bits - 1)) - 1;
  // The fraction is a small integer and the unit is a power of two, so the product is exact.
  const float unit = __builtin_bit_cast(float, (127 + 1 - bias - static_cast<uint32_t>(fraction_bits)) << 23);
  const float magnitude =
      exponent == 0
          ? static_cast<float>(fraction) * unit
          : __builtin_bit_cast(float, (exponent + 127 - bias) << 23 | fraction << (23 - fraction_bits));
  return (code >> (exponent_bits + fraction_bits) & 1) != 0 ? -magnitude : magnitude;
}

// Rounds to nearest even. The value must be in [-448, 448] or be NaN. A NaN keeps its sign.
[[maybe_unused]] uint8_t clamped_f32_to_e4m3fn(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7F;
  if (magnitude < 0x3C800000) {  // below 2^-6: adding 2^14 leaves units of 2^-9, the smallest subnormal
    const float sum = __builtin_bit_cast(float, magnitude) + 0x1p14f;
    return static_cast<uint8_t>(sign | (__builtin_bit_cast(uint32_t, sum) - 0x46800000));
  }
  const uint32_t rounded = magnitude + 0x7FFFF + (magnitude >> 20 & 1);
  return static_cast<uint8_t>(sign | (rounded - 0x3C000000) >> 20);
}

// Returns element `index` of an array of dtype (F32, F16 or BF16), at any alignment, as a float.
[[maybe_unused]] float load(uint32_t dtype, const void* array, int64_t index) {
  if (dtype == QCTS_F32) {
    float value;
    std::memcpy(&value, static_cast<const char*>(array) + 4 * index, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, static_cast<const char*>(array) + 2 * index, 2);
  return dtype == QCTS_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

// Stores a float, rounded once to dtype.
[[maybe_unused]] void store(uint32_t dtype, void* array, int64_t index, float value) {
  if (dtype == QCTS_F32) {
    std::memcpy(static_cast<char*>(array) + 4 * index, &value, 4);
    return;
  }
  const uint16_t bits = dtype == QCTS_F16 ? f32_to_f16(value) : f32_to_bf16(value);
  std::memcpy(static_cast<char*>(array) + 2 * index, &bits, 2);
}

// Rounds `value` to dtype.
// A library does the same if it computes in float and stores the result in a tensor of dtype.
[[maybe_unused]] float round_to(uint32_t dtype, float value) {
  if (dtype == QCTS_F16) return f16_to_f32(f32_to_f16(value));
  if (dtype == QCTS_BF16) return bf16_to_f32(f32_to_bf16(value));
  return value;
}

// Rounds to odd: an exact value stays the same; an inexact value becomes its neighbour with an odd last bit.
// A later rounding to at most 22 bits then gives the same result
// as rounding `value` itself (Boldo and Melquiond, 2008). Overflow gives the largest finite float.
[[maybe_unused]] float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const double back = nearest;
  uint32_t bits = __builtin_bit_cast(uint32_t, nearest);
  if ((back < value || back > value) && (bits & 1) == 0) {
    const bool grow = value > 0 ? back < value : back > value;
    bits = bits << 1 == 0 ? (value < 0 ? 0x80000001u : 1u) : grow ? bits + 1 : bits - 1;
  }
  return __builtin_bit_cast(float, bits);
}

// Returns a + b, rounded to odd.
[[maybe_unused]] double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double rest = sum - a;
  const double error = (a - (sum - rest)) + (b - rest);  // Knuth's two-sum; NaN for non-finite sums
  uint64_t bits = __builtin_bit_cast(uint64_t, sum);
  if ((error < 0 || error > 0) && (bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
  return __builtin_bit_cast(double, bits);
}

// Stores a double, rounded once to dtype.
[[maybe_unused]] void store_double(uint32_t dtype, void* array, int64_t index, double value) {
  store(dtype, array, index, dtype == QCTS_F32 ? static_cast<float>(value) : round_to_odd(value));
}

}  // namespace
}  // namespace qcts::scalar
