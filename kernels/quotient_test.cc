// SPDX-License-Identifier: BSD-3-Clause
// Tests, in scalar form, the methods by which AVX2 and AVX-512 kernels round without divisions or integer
// arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace qcts {
namespace {

// kernels/avx2/quantize/int4_plain_quantize.h: a product with the reciprocal and one Newton step round to the
// same integer as the quotient. Powers of two change nothing, so only the significand of a scale matters; and
// only the floats around a tie can differ. (They agree for all 2^23 significands; this tries one of 61.)
TEST(Reciprocal, RoundsToTheSameIntegerAsTheQuotient) {
  for (uint32_t significand = 1u << 23; significand < 1u << 24; significand += 61) {
    const float scale = static_cast<float>(significand) * 0x1p-23f, reciprocal = 1 / scale;
    for (int i = 0; i < 16; ++i) {
      float v = scale * (static_cast<float>(i) + 0.5f);
      for (int step = 0; step < 3; ++step) v = std::nextafterf(v, 0);
      for (int step = -3; step <= 3; ++step, v = std::nextafterf(v, INFINITY)) {
        const float near = v * reciprocal;
        const float found = std::fma(std::fma(-near, scale, v), reciprocal, near);
        ASSERT_EQ(std::nearbyint(found), std::nearbyint(v / scale)) << scale << " " << v;
      }
    }
  }
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
float of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
float to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  return of_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u);
}

// bf16_rounded of kernels/avx2/elements.h: every normal exponent below 2^110, every upper half, and lower
// halves just below a tie, at it, just above it and at both ends.
TEST(Bfloat16, IsRoundedByTwoProducts) {
  constexpr uint32_t kLower[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
  for (uint32_t upper = 1u << 7; upper < (127u + 110) << 7; ++upper)
    for (const uint32_t lower : kLower)
      for (const uint32_t sign : {0u, 0x80000000u}) {
        const float v = of_bits(sign | upper << 16 | lower), far = v * 65535;
        ASSERT_EQ(bits_of(std::fma(v, 65536.0f, -far)), bits_of(to_bf16(v))) << std::hexfloat << v;
      }
}

// bf16_rounded_product of the same header: every significand times every other one's reciprocal, on both
// sides of 1.
TEST(Bfloat16, QuotientIsRoundedByTheReciprocal) {
  for (int divisor = 128; divisor < 256; ++divisor) {
    const float scale = static_cast<float>(divisor), reciprocal = 1 / scale, by_65537 = reciprocal * 65537;
    for (int dividend = 128; dividend < 256; ++dividend)
      for (const int exponent : {-40, -1, 0, 1, 7, 40}) {
        const float v = std::ldexp(static_cast<float>(dividend), exponent), far = v * by_65537;
        ASSERT_EQ(std::fma(v, reciprocal, far) - far, to_bf16(v / scale)) << v << " / " << scale;
      }
  }
}

// How kernels/avx2/quantize/blocks.h (short_quotient_codes) and kernels/avx512/quantize/float8_quantize.h
// (rounded_products) turn a product's bits into a code: the bits above the `dropped` low ones.
uint32_t code_by_avx2(uint32_t bits, int dropped) {
  return (bits + (bits >> (dropped - 6) & 64) + (1u << (dropped - 1)) - 32) >> dropped;
}
uint32_t code_by_avx512(uint32_t bits, int dropped) {
  return (bits + ((1u << (dropped - 1)) | (bits >> (dropped - 7) & 128))) >> dropped;
}

// e4m3 and e5m2: every scale of 11 bits and every x of 8 bits, from below half of the smallest code to the
// largest.
TEST(Float8, CodeOfAShortQuotientIsFoundByTheReciprocal) {
  for (const bool e4m3 : {true, false}) {
    const int dropped = e4m3 ? 20 : 21, fraction = 23 - dropped, bias = e4m3 ? 7 : 15;
    const float unit = std::ldexp(1.0f, bias - 127);
    for (int divisor = 1024; divisor < 2048; ++divisor) {
      const float scale = static_cast<float>(divisor), factor = unit / scale;
      const float lower_factor = unit * (1 - 0x1p-18f) / scale;
      for (int exponent = -bias - fraction - 1; exponent < (e4m3 ? 8 : 15); ++exponent)
        for (int dividend = 128; dividend < 256; ++dividend) {
          const float x = std::ldexp(static_cast<float>(dividend), exponent + 3), quotient = x / scale;
          const int last_place =
              std::max(std::ilogb(quotient), 1 - bias) - fraction;  // exponent of a code's unit
          const float want = std::ldexp(std::nearbyint(std::ldexp(quotient, -last_place)), last_place);
          const auto value = [&](uint32_t code) { return of_bits(code << dropped) / unit; };
          ASSERT_EQ(value(code_by_avx2(bits_of(x * factor), dropped)), want) << x << " / " << scale;
          ASSERT_EQ(value(code_by_avx512(bits_of(x * lower_factor), dropped)), want) << x << " / " << scale;
        }
    }
  }
}

}  // namespace
}  // namespace qcts
