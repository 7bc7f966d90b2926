// SPDX-License-Identifier: BSD-3-Clause
// Tests every value of the narrow types, and every place where rounding can go wrong.
#include "reference/numerics/soft_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace qcts {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

uint64_t patterns(DType dtype) {
  return uint64_t{1} << (dtype == DType::float4_e2m1fn_x2 ? 4 : dtype_bits(dtype));
}

// Computes the published definition differently from the code under test: as sums of powers of two, bit by
// bit.
double by_definition(const FloatFormat& format, uint64_t bits) {
  const int width = format.exponent_bits + format.mantissa_bits;
  int exponent = 0;
  for (int i = 0; i < format.exponent_bits; ++i) exponent += (bits >> (format.mantissa_bits + i) & 1) << i;
  double value = exponent == 0 ? 0.0 : 1.0;
  for (int i = 0; i < format.mantissa_bits; ++i)
    if (bits >> i & 1) value += std::pow(2.0, i - format.mantissa_bits);
  value *= std::pow(2.0, std::max(exponent, 1) - format.bias);
  return bits >> width & 1 ? -value : value;
}

class NarrowFloat : public testing::TestWithParam<DType> {
 protected:
  // Returns all finite non-negative values in increasing order; each one's bit pattern is its index.
  std::vector<double> values() const {
    const FloatFormat& format = float_format(GetParam());
    std::vector<double> all;
    for (uint64_t bits = 0; bits < patterns(GetParam()) / 2; ++bits) {
      const double value = decode_float(GetParam(), bits);
      if (!std::isfinite(value)) break;
      all.push_back(value);
    }
    EXPECT_EQ(all.back(), format.max);
    return all;
  }
};

TEST_P(NarrowFloat, DecodesEveryPatternToItsDefinition) {
  const FloatFormat& format = float_format(GetParam());
  uint64_t finite = 0;
  for (uint64_t bits = 0; bits < patterns(GetParam()); ++bits) {
    const double value = decode_float(GetParam(), bits);
    if (!std::isfinite(value)) continue;
    ++finite;
    ASSERT_EQ(std::bit_cast<uint64_t>(value), std::bit_cast<uint64_t>(by_definition(format, bits))) << bits;
  }
  // Counts by OCP and IEEE: all patterns except Inf and NaN.
  const uint64_t special = GetParam() == DType::float8_e4m3fn ? 2
                           : !format.has_nan                  ? 0
                                                              : uint64_t{2} << format.mantissa_bits;
  EXPECT_EQ(finite, patterns(GetParam()) - special);
}

TEST_P(NarrowFloat, EncodesEveryValueToItself) {
  const std::vector<double> all = values();
  const uint64_t sign = patterns(GetParam()) / 2;
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(encode_float(GetParam(), all[i]), i);
    ASSERT_EQ(encode_float(GetParam(), -all[i]), sign | i);
  }
}

TEST_P(NarrowFloat, RoundsHalfwayToEvenAndItsNeighboursToTheNearest) {
  const std::vector<double> all = values();
  const uint64_t sign = patterns(GetParam()) / 2;
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const double half = (all[i] + all[i + 1]) / 2;  // exact in double
    const uint64_t even = i % 2 == 0 ? i : i + 1;
    ASSERT_EQ(encode_float(GetParam(), half), even) << half;
    ASSERT_EQ(encode_float(GetParam(), -half), sign | even) << -half;
    ASSERT_EQ(encode_float(GetParam(), std::nextafter(half, 0)), i) << half;
    ASSERT_EQ(encode_float(GetParam(), std::nextafter(half, kInf)), i + 1) << half;
    for (const double v : {all[i], half, std::nextafter(half, 0), std::nextafter(half, kInf), all[i + 1]})
      for (const double value : {v, -v})
        ASSERT_EQ(std::bit_cast<uint64_t>(round_to(GetParam(), value)),
                  std::bit_cast<uint64_t>(decode_float(GetParam(), encode_float(GetParam(), value))))
            << value;
  }
}

TEST(SoftFloat, RoundsFloatsAsItRoundsDoubles) {
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32})
    for (uint64_t high = 0; high < 0x10000; ++high)
      for (const uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
        const float value = std::bit_cast<float>(static_cast<uint32_t>(high << 16 | low));
        const double want = decode_float(dtype, encode_float(dtype, static_cast<double>(value)));
        if (std::isnan(value))
          ASSERT_TRUE(std::isnan(round_to(dtype, value)));
        else
          ASSERT_EQ(std::bit_cast<uint64_t>(static_cast<double>(round_to(dtype, value))),
                    std::bit_cast<uint64_t>(want));
      }
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowFloat,
                         testing::Values(DType::bfloat16, DType::float16, DType::float8_e4m3fn,
                                         DType::float8_e5m2, DType::float4_e2m1fn_x2, DType::float6_e2m3fn,
                                         DType::float6_e3m2fn),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

// Values above the maximum, as torch 2.13.0 casts float32 on a CPU (recorded from torch.Tensor.to).
struct Overflow {
  DType dtype;
  double value;
  uint64_t bits;
};
class OverflowOf : public testing::TestWithParam<Overflow> {};
TEST_P(OverflowOf, IsWhatTorchDoes) {
  EXPECT_EQ(encode_float(GetParam().dtype, GetParam().value), GetParam().bits);
}
INSTANTIATE_TEST_SUITE_P(
    Torch, OverflowOf,
    testing::Values(Overflow{DType::float8_e4m3fn, 449, 0x7E}, Overflow{DType::float8_e4m3fn, 464, 0x7E},
                    Overflow{DType::float8_e4m3fn, 480, 0x7E}, Overflow{DType::float8_e4m3fn, 1e9, 0x7E},
                    Overflow{DType::float8_e4m3fn, kInf, 0x7E}, Overflow{DType::float8_e4m3fn, -kInf, 0xFE},
                    Overflow{DType::float8_e4m3fn, -500, 0xFE}, Overflow{DType::float8_e4m3fn, 0x1p-10, 0x00},
                    Overflow{DType::float8_e5m2, 61439, 0x7B}, Overflow{DType::float8_e5m2, 61440, 0x7C},
                    Overflow{DType::float8_e5m2, 1e9, 0x7C}, Overflow{DType::float8_e5m2, -kInf, 0xFC},
                    Overflow{DType::float16, 65519, 0x7BFF}, Overflow{DType::float16, 65520, 0x7C00},
                    Overflow{DType::float16, -kInf, 0xFC00},
                    Overflow{DType::bfloat16, 0x1.FEFFFEp127, 0x7F7F},
                    Overflow{DType::bfloat16, 0x1.FFp127, 0x7F80}, Overflow{DType::bfloat16, -kInf, 0xFF80},
                    Overflow{DType::float4_e2m1fn_x2, 7, 0x7},
                    Overflow{DType::float4_e2m1fn_x2, -kInf, 0xF}));

TEST(SoftFloat, NanStaysNanWithItsSign) {
  for (DType dtype :
       {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2}) {
    for (double nan : {kNan, -kNan}) {
      const double back = round_to(dtype, nan);
      EXPECT_TRUE(std::isnan(back)) << dtype_name(dtype);
      EXPECT_EQ(std::signbit(back), std::signbit(nan)) << dtype_name(dtype);
    }
  }
  EXPECT_EQ(encode_float(DType::float8_e4m3fn, kNan), 0x7Fu);
  EXPECT_EQ(encode_float(DType::float8_e5m2, -kNan), 0xFFu);
}

// torch.tensor([1, 1.4, 1.5, 3, 0, -1, nan, inf, 2**-127, 2**127, 1.99 * 2**127]).to(torch.float8_e8m0fnu),
// torch 2.13.0
TEST(SoftFloat, E8m0IsWhatTorchDoes) {
  const double values[] = {1, 1.4, 1.5, 3, 0, -1, kNan, kInf, 0x1p-127, 0x1p127, 1.99 * 0x1p127};
  const uint64_t bits[] = {127, 127, 128, 129, 0, 127, 255, 255, 0, 254, 255};
  for (size_t i = 0; i < std::size(values); ++i)
    EXPECT_EQ(encode_float(DType::float8_e8m0fnu, values[i]), bits[i]);
  for (uint64_t b = 0; b < 255; ++b)
    EXPECT_EQ(decode_float(DType::float8_e8m0fnu, b), std::pow(2.0, static_cast<double>(b) - 127));
  EXPECT_TRUE(std::isnan(decode_float(DType::float8_e8m0fnu, 255)));
}

// Casting via float32 and casting in one step differ just above a tie.
TEST(SoftFloat, Float64RoundsOnce) {
  const double above_tie = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(decode_float(DType::bfloat16, encode_float(DType::bfloat16, above_tie)), 1 + 0x1p-7);
  EXPECT_EQ(decode_float(DType::bfloat16, encode_float(DType::bfloat16, static_cast<float>(above_tie))), 1.0);
}

// The sum is inexact in double and lands on a bfloat16 tie; only the lost part shows the direction.
TEST(SoftFloat, FmaRoundsOnceHoweverFarTheOperandsAreApart) {
  const double tie = 1 + 0x1p-8;
  EXPECT_EQ(fma_in(DType::bfloat16, 1, 0x1p-100, tie), 1 + 0x1p-7);
  EXPECT_EQ(fma_in(DType::bfloat16, -1, 0x1p-100, tie), 1.0);
  EXPECT_EQ(fma_in(DType::bfloat16, 1, 0x1p-100, -tie), -1.0);
  EXPECT_EQ(fma_in(DType::bfloat16, -1, 0x1p-100, -tie), -1 - 0x1p-7);
  EXPECT_EQ(fma_in(DType::bfloat16, 0, 1, tie), 1.0);  // a true tie goes to even
  EXPECT_TRUE(std::isnan(fma_in(DType::bfloat16, 0, kInf, 1)));
  EXPECT_EQ(fma_in(DType::float32, 7, 0x1.fffffep126, 0), kInf);
}

TEST(SoftFloat, OperationsRoundInTheirType) {
  EXPECT_EQ(add_in(DType::bfloat16, 256, 1), 256);  // 9 bits: tie to even
  EXPECT_EQ(add_in(DType::bfloat16, 258, 1), 260);
  EXPECT_EQ(sub_in(DType::float16, 2048, -1), 2048);  // 12 bits
  EXPECT_EQ(mul_in(DType::float16, 256, 256), static_cast<float>(kInf));
  EXPECT_EQ(div_in(DType::bfloat16, 1, 3), 0.333984375f);
}

TEST(SoftFloat, StoresAndLoadsLittleEndian) {
  std::vector<std::byte> bytes(4);
  store_float(DType::bfloat16, bytes, 1, 1.0);
  EXPECT_EQ(bytes, (std::vector<std::byte>{std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3F}}));
  EXPECT_EQ(load_floats(DType::bfloat16, bytes), (std::vector<float>{0, 1}));
}

}  // namespace
}  // namespace qcts
