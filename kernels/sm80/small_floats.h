// SPDX-License-Identifier: BSD-3-Clause
// Small floats of OCP Microscaling Formats 1.0 on a device. They give the results of
// kernels/families/block_scales.h.
#pragma once

#include "kernels/families/block_scales.h"
#include "kernels/sm80/elements.h"

namespace qcts::sm80 {
namespace {

constexpr uint32_t kInfinityBits = 0x7F800000, kMagnitudeBits = 0x7FFFFFFF, kQuietNan = 0x7FC00000;

QCTS_DEVICE bool is_nan(float value) { return (bits_of(value) & kMagnitudeBits) > kInfinityBits; }
// The sign and the payload of a NaN become bits of codes of four and six bits. A GPU's arithmetic keeps
// neither. These functions keep both, as x86 does, and a signaling NaN becomes quiet.
QCTS_DEVICE float quieted(float nan) { return float_of(bits_of(nan) | kQuietNan); }
QCTS_DEVICE float times(float a, float b) {
  if (is_nan(b)) return quieted(b);
  if (is_nan(a)) return quieted(a);
  const float product = a * b;
  return is_nan(product) ? float_of(0x80000000 | kQuietNan) : product;
}
QCTS_DEVICE float quotient(float a, float b) {
  if (is_nan(a)) return quieted(a);
  if (is_nan(b)) return quieted(b);
  const float ratio = a / b;
  return is_nan(ratio) ? float_of(0x80000000 | kQuietNan) : ratio;
}
// Returns 2^exponent, also if that is subnormal.
QCTS_DEVICE float power_of_two(int exponent) {
  return float_of(exponent >= -126 ? static_cast<uint32_t>(exponent + 127) << 23 : 1u << (exponent + 149));
}
QCTS_DEVICE float e8m0_to_f32(uint32_t code) {
  return float_of(code == 255 ? kQuietNan : code == 0 ? 0x00400000u : code << 23);
}

struct SmallFormat {
  int fraction_bits, bias, sign_bit, largest_exponent;
  float largest;
  uint32_t infinity, nan;  // magnitude of infinity; least magnitude of a NaN; 0x80: none

  QCTS_DEVICE float decode(uint32_t code) const {
    const uint32_t magnitude = code & ((1u << sign_bit) - 1), sign = code >> sign_bit << 31;
    if (magnitude >= nan) return float_of(sign | kQuietNan);
    if (magnitude == infinity) return float_of(sign | kInfinityBits);
    // This is exact, also for subnormals. The exponent is off by the difference of the biases.
    const float shifted = float_of(magnitude << (23 - fraction_bits)) * power_of_two(127 - bias);
    return float_of(sign | bits_of(shifted));
  }

  // Rounds to nearest even. A value beyond the largest becomes the largest. A NaN keeps its sign.
  QCTS_DEVICE uint32_t encode(float value) const {
    const uint32_t sign = bits_of(value) >> 31 << sign_bit;
    uint32_t magnitude = bits_of(value) & kMagnitudeBits;
    if (magnitude <= kInfinityBits)
      magnitude = magnitude < bits_of(largest) ? magnitude : bits_of(largest);
    else if (nan < 0x80)
      return sign | 0x7F;
    // Below the smallest normal number, an addition does the rounding. Its sum counts units of the smallest
    // subnormal.
    if (magnitude < static_cast<uint32_t>(128 - bias) << 23) {
      const float counter = power_of_two(24 - bias - fraction_bits);
      return sign | (bits_of(float_of(magnitude) + counter) - bits_of(counter));
    }
    const int dropped = 23 - fraction_bits;
    const uint32_t rounded = magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1) -
                             (static_cast<uint32_t>(127 - bias) << 23);
    return (sign | rounded >> dropped) & 0xFF;
  }
};

constexpr SmallFormat kE4m3 = {3, 7, 7, 8, 448.0f, 0x80, 0x7F};
constexpr SmallFormat kE5m2 = {2, 15, 7, 15, 57344.0f, 0x7C, 0x7D};
constexpr SmallFormat kE2m3 = {3, 1, 5, 2, 7.5f, 0x80, 0x80};
constexpr SmallFormat kE3m2 = {2, 3, 5, 4, 28.0f, 0x80, 0x80};
constexpr SmallFormat kE2m1 = {1, 1, 3, 2, 6.0f, 0x80, 0x80};

// A member function of a constant at namespace scope cannot be called on a device, since the constant has no
// address there.
QCTS_DEVICE float decode_e4m3(uint32_t code) {
  constexpr SmallFormat format = kE4m3;
  return format.decode(code);
}
QCTS_DEVICE uint32_t encode_e4m3(float value) {
  constexpr SmallFormat format = kE4m3;
  return format.encode(value);
}
QCTS_DEVICE float decode_e2m1(uint32_t code) {
  constexpr SmallFormat format = kE2m1;
  return format.decode(code);
}
QCTS_DEVICE uint32_t encode_e2m1(float value) {
  constexpr SmallFormat format = kE2m1;
  return format.encode(value);
}

// Returns the format of an element_dtype of qcts_scheme_params, on the host.
[[maybe_unused]] SmallFormat small_format(uint32_t element) {
  return element == QCTS_F8_E5M2      ? kE5m2
         : element == QCTS_F6_E2M3    ? kE2m3
         : element == QCTS_F6_E3M2    ? kE3m2
         : element == QCTS_F4_E2M1_X2 ? kE2m1
                                      : kE4m3;
}

}  // namespace
}  // namespace qcts::sm80
