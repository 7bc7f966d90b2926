// SPDX-License-Identifier: BSD-3-Clause
// Tests parts of the block formats that the suites' inputs hit only by chance: the logarithm whose rounding
// decides a scale, and that every code of every small float encodes to itself.
#include "kernels/families/block_scales.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

namespace qcts {
namespace {

// ceil(float(log2 x)), in the library's order, for fractions on both sides of the point where the logarithm
// no longer rounds to its integer.
TEST(BlockScales, RceilFollowsTheRoundedLogarithm) {
  qcts_scheme_params params = {};
  params.struct_size = sizeof params;
  params.element_dtype = QCTS_F4_E2M1_X2;
  params.scale_rounding = QCTS_SCALE_RCEIL;
  qcts_problem problem = {};
  problem.struct_size = sizeof problem;
  problem.params = &params;
  const MxRecipe recipe = mx_recipe(problem);
  ASSERT_EQ(recipe.mode, MxMode::rceil);
  ASSERT_EQ(recipe.element, SmallFloat::e2m1);
  for (int exponent = -149; exponent <= 124; ++exponent)
    for (int step = -3; step <= 60; ++step) {
      float largest = std::ldexp(6.0f, exponent);
      for (int i = 0; i < std::abs(step); ++i) largest = std::nextafterf(largest, step < 0 ? 0.0f : INFINITY);
      const float ratio = largest / 6.0f;
      if (ratio == 0) continue;
      const double want =
          std::fmax(-127.0, std::ceil(static_cast<float>(std::log2(static_cast<double>(ratio)))));
      ASSERT_EQ(mx_scale(recipe, largest).byte - 127, want) << std::hexfloat << ratio;
    }
}

class SmallFloats : public testing::TestWithParam<SmallFloat> {};

// Values between two neighbours get the nearer one's code, values halfway between them the even one.
TEST_P(SmallFloats, RoundToNearestEven) {
  const SmallFloat format = GetParam();
  const auto code = [&](double value) { return small_float_code(format, static_cast<float>(value)); };
  const int fraction_bits = format == SmallFloat::e4m3 || format == SmallFloat::e2m3 ? 3
                            : format == SmallFloat::e2m1                             ? 1
                                                                                     : 2;
  const int bias = format == SmallFloat::e4m3   ? 7
                   : format == SmallFloat::e5m2 ? 15
                   : format == SmallFloat::e3m2 ? 3
                                                : 1;
  const int last = format == SmallFloat::e4m3   ? 0x7E
                   : format == SmallFloat::e5m2 ? 0x7B
                   : format == SmallFloat::e2m1 ? 7
                                                : 0x1F;
  const auto value = [&](int of) {
    const int exponent = of >> fraction_bits, fraction = of & ((1 << fraction_bits) - 1);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                         : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  };
  const int sign = code(-value(last)) - last;
  for (int of = 0; of <= last; ++of) {
    EXPECT_EQ(code(value(of)), of);
    EXPECT_EQ(code(-value(of)), of | sign);
    if (of == last) continue;
    const double half = (value(of) + value(of + 1)) / 2;
    EXPECT_EQ(code(half), of % 2 == 0 ? of : of + 1) << half;
    EXPECT_EQ(code(std::nextafterf(static_cast<float>(half), 0.0f)), of) << half;
    EXPECT_EQ(code(std::nextafterf(static_cast<float>(half), INFINITY)), of + 1) << half;
  }
  EXPECT_EQ(code(INFINITY), last);
  EXPECT_EQ(code(3e38), last);
}

INSTANTIATE_TEST_SUITE_P(BlockScales, SmallFloats,
                         testing::Values(SmallFloat::e4m3, SmallFloat::e5m2, SmallFloat::e2m3,
                                         SmallFloat::e3m2, SmallFloat::e2m1));

TEST(BlockScales, TilesComeBackAndPadWithZeros) {
  const ScaleShape shape = {130, 6};
  ASSERT_EQ(swizzled_bytes(shape), 512 * 2 * 2);
  std::string plain, back(780, '\0'), tiles(2048, 'x');
  for (int i = 0; i < 780; ++i) plain += static_cast<char>(1 + i % 250);
  swizzle_scales(2, shape, plain.data(), tiles.data());
  EXPECT_EQ(std::count(tiles.begin(), tiles.end(), '\0'), 2048 - 780);
  EXPECT_EQ(tiles[33 % 32 * 16 + 1 * 4 + 2], plain[33 * 6 + 2]);  // row 33, column 2
  EXPECT_EQ(tiles[512 * 3 + 1 * 16 + 1], plain[129 * 6 + 5]);     // row 129, column 5
  unswizzle_scales(2, shape, tiles.data(), back.data());
  EXPECT_EQ(back, plain);
}

}  // namespace
}  // namespace qcts
