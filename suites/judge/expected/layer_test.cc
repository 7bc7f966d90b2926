// SPDX-License-Identifier: BSD-3-Clause
// Tests that a large layer is judged whole: its rows repeat, and each output has the bound of its own row.
#include <set>

#include <gtest/gtest.h>

#include "suites/cases/model.h"
#include "suites/inputs/layer_input.h"
#include "suites/judge/expected/expectation.h"

namespace qcts {
namespace {

std::string text_of_row(const KernelInput& input, int64_t row) {
  std::vector<ExactWeight> weights(static_cast<size_t>(input.weight.k));
  input.scheme->exact_row(input.planes, input.weight, row, weights);
  return {reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof weights[0]};
}

class LayerOfScheme : public testing::TestWithParam<const char*> {};

TEST_P(LayerOfScheme, FewRowsDiffer) {
  const Scheme& scheme = *find_scheme(GetParam());
  const std::optional<Case> c =
      layer_case({Kind::numerics, Op::linear, std::string(scheme.name()), "layer_m33_n1072_k512_bf16"});
  ASSERT_TRUE(c);
  const TestVector made = make_test_vector(*c, 0);
  std::set<std::string> rows;
  for (int64_t r = 0; r < 1072; ++r) rows.insert(text_of_row(made.input, r));
  EXPECT_GT(rows.size(), 100u);
  EXPECT_LE(rows.size(), 512u);
}

INSTANTIATE_TEST_SUITE_P(Schemes, LayerOfScheme,
                         testing::Values("int8_row", "int8_g32", "int4_tinygemm_g128", "int4_plain_g32",
                                         "intx_b4_g32_sym", "fp8_row", "mxfp8_e4m3_floor", "mxfp4_floor",
                                         "nvfp4_two_level", "fp8_sparse24_row"));

// The bound of a row is the same, whether the other rows are read or not.
TEST(Layer, EachOutputHasItsOwnBound) {
  const std::optional<Case> c =
      layer_case({Kind::numerics, Op::linear, "int8_row", "layer_m34_n1072_k128_f32"});
  ASSERT_TRUE(c);
  const TestVector made = make_test_vector(*c, 3);
  ASSERT_FALSE(made.input.bias.empty());
  const LinearReference whole(made.input), none(made.input, false);
  const std::vector<Bounded> bounds = whole.bounds({});
  ASSERT_EQ(bounds.size(), 34u * 1072u);
  std::vector<ExactWeight> row(128);
  for (int64_t m = 0; m < 34; ++m)
    for (int64_t n = 0; n < 1072; n += 7) {
      made.input.scheme->exact_row(made.input.planes, made.input.weight, n, row);
      const Bounded alone = none.bounded(row, m, n, {}), got = bounds[static_cast<size_t>(m * 1072 + n)];
      ASSERT_EQ(alone.value, got.value) << m << " " << n;
      ASSERT_EQ(alone.low, got.low);
      ASSERT_EQ(alone.high, got.high);
    }
}

}  // namespace
}  // namespace qcts
