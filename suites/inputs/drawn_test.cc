// SPDX-License-Identifier: BSD-3-Clause
// Tests that drawn problems are as varied as their header says, and fit their limits.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "suites/inputs/drawn.h"
#include "suites/inputs/inputs.h"

namespace qcts {
namespace {

using Problem = std::tuple<int64_t, int64_t, int64_t, DType, uint32_t, bool>;

Problem problem_of(const Synthetic& input) {
  return {
      input.m, input.weight.n, input.weight.k, input.weight.dtype, input.draw->threads, input.draw->has_bias};
}

std::vector<Synthetic> linear_of(const char* scheme, uint64_t seed) {
  return drawn_inputs(Op::linear, *find_scheme(scheme), kPlain, kWeightOnly, seed);
}

class DrawnInputs : public testing::TestWithParam<const char*> {};

TEST_P(DrawnInputs, KeepTheirLimits) {
  const Scheme& scheme = *find_scheme(GetParam());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Synthetic> drawn = linear_of(GetParam(), seed);
    ASSERT_EQ(drawn.size(), static_cast<size_t>(kDraws));
    for (const Synthetic& input : drawn) {
      EXPECT_FALSE(scheme.refusal(input.weight)) << problem_text(input, Op::linear);
      EXPECT_LE(input.m * input.weight.n * input.weight.k, kMaxDrawnProducts);
      EXPECT_TRUE(input.m >= 1 && input.m <= 300 && input.weight.n >= 1) << problem_text(input, Op::linear);
      EXPECT_TRUE(input.draw->threads >= 1 && input.draw->threads <= 17);
    }
    EXPECT_EQ(drawn[1].m, 1);
  }
}

TEST_P(DrawnInputs, ReachTheEndsOfTheirRanges) {
  std::set<DType> dtypes;
  std::set<bool> biases;
  std::set<uint32_t> threads;
  int64_t rows = 0, columns = 0, depth = 0;
  for (uint64_t seed = 0; seed < 100; ++seed)
    for (const Synthetic& input : linear_of(GetParam(), seed)) {
      dtypes.insert(input.weight.dtype);
      biases.insert(input.draw->has_bias);
      threads.insert(input.draw->threads);
      rows = std::max(rows, input.m), columns = std::max(columns, input.weight.n);
      depth = std::max(depth, input.weight.k);
    }
  EXPECT_GT(rows, 250);
  EXPECT_GT(columns, 250);
  const int64_t group = find_scheme(GetParam())->group();
  EXPECT_GE(depth, group == 0 ? 3800 : 44 * group);
  EXPECT_EQ(threads.size(), 17u);
  EXPECT_EQ(biases.size(), 2u);
  EXPECT_FALSE(dtypes.empty());
}

INSTANTIATE_TEST_SUITE_P(Schemes, DrawnInputs,
                         testing::Values("int8_row", "int4_tinygemm_g128", "mxfp4_floor", "nf4_b64_s256"),
                         [](const auto& info) { return std::string(info.param); });

TEST(DrawnInput, AnotherSeedSchemeOperationOrPolicyGivesOtherProblems) {
  const Scheme& row = *find_scheme("int8_row");
  const auto problems = [](const std::vector<Synthetic>& inputs) {
    std::vector<Problem> all;
    std::ranges::transform(inputs, std::back_inserter(all), problem_of);
    return all;
  };
  const auto first = problems(linear_of("int8_row", 0));
  EXPECT_EQ(first, problems(linear_of("int8_row", 0)));
  EXPECT_NE(first, problems(linear_of("int8_row", 1)));
  EXPECT_NE(first, problems(linear_of("int8_tensor", 0)));
  EXPECT_NE(first, problems(drawn_inputs(Op::dequantize, row, kPlain, kWeightOnly, 0)));
  EXPECT_NE(first, problems(drawn_inputs(Op::linear, row, kPlain, row.activations()[1], 0)));
}

TEST(DrawnInput, TheFirstHasOneRowOfTheWeight) {
  EXPECT_EQ(linear_of("int8_row", 3)[0].weight.n, 1);
  EXPECT_EQ(input_name(linear_of("int8_row", 3)[0], Op::linear, kPlain), "drawn_00");
}

}  // namespace
}  // namespace qcts
