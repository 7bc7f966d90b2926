// The inputs hold what their names promise; a generator that lost its point would leave its mutants alive.
#include "suites/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "reference/numerics/soft_float.h"
#include "suites/compare.h"
#include "suites/inputs.h"
#include "suites/question.h"

namespace qcts {
namespace {

class GenerateForScheme : public testing::TestWithParam<size_t> {
 protected:
  const Scheme& scheme() const { return *schemes()[GetParam()]; }
  int64_t k() const { return 3 * std::max<int64_t>(scheme().group(), 32); }
};

TEST_P(GenerateForScheme, ExactSumsAreExactInTheNarrowestType) {
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
    const Synthetic synthetic{"exact_sums", {dtype, 37, k()}, 5, 11};
    const Generated made = generate(scheme(), "linear", "plain", synthetic, 11);
    EXPECT_TRUE(made.exact);
    const LinearTruth truth(made.input);
    qcts_numerics numerics{};
    numerics.accumulator = QCTS_F64;
    size_t nonzero = 0;
    for (const Bounded& want : truth.bounds(numerics)) {
      EXPECT_EQ(round_to(DType::bfloat16, want.value), want.value);
      nonzero += want.value != 0;
    }
    EXPECT_GT(nonzero, 5u * 37u / 2);
    bool odd = false;
    for (const ExactWeight& weight : truth.row(0)) odd = odd || std::fmod(weight.scale * 1024, 3) == 0;
    EXPECT_TRUE(odd) << "scales that are powers of two hide a scale that is read in a narrower type";
  }
}

// Every non-anchor element of a boundary weight lies next to a step of the quantizer: one float up or down,
// and its code changes.
TEST_P(GenerateForScheme, BoundaryWeightsLieAtSteps) {
  const WeightShape shape{DType::bfloat16, 6, k()};
  const std::vector<std::byte> weight = boundary_weight(scheme(), shape, 5);
  const std::vector<std::byte> meaning =
      scheme().dequantize(scheme().quantize({shape.dtype, shape.n, shape.k, weight}), shape);
  const int64_t group = scheme().group() == 0 ? shape.k : scheme().group();
  size_t at_step = 0, asked = 0;
  std::vector<std::byte> up = weight;
  for (int64_t i = 0; i < shape.n * shape.k; ++i)
    if (i % shape.k % group >= 2)
      store_float(shape.dtype, up, static_cast<size_t>(i),
                  load_float(shape.dtype, weight, static_cast<size_t>(i)) * (1 + 0x1p-7));
  const std::vector<std::byte> moved =
      scheme().dequantize(scheme().quantize({shape.dtype, shape.n, shape.k, up}), shape);
  for (int64_t i = 0; i < shape.n * shape.k; ++i) {
    if (i % shape.k % group < 2 || i % 3 != 0) continue;
    ++asked;
    const double before = load_float(shape.dtype, meaning, static_cast<size_t>(i));
    at_step += load_float(shape.dtype, weight, static_cast<size_t>(i)) < 0 ||
               before != load_float(shape.dtype, moved, static_cast<size_t>(i));
  }
  EXPECT_GT(static_cast<double>(at_step), 0.9 * static_cast<double>(asked));
}

TEST_P(GenerateForScheme, AllCodesHoldsEveryByte) {
  const Synthetic synthetic{"all_codes", {DType::bfloat16, 16, k()}, 1, 1};
  const Generated made = generate(scheme(), "dequantize", "plain", synthetic, 1);
  std::set<std::byte> seen(made.input.planes[0].bytes.begin(), made.input.planes[0].bytes.end());
  EXPECT_EQ(seen.size(), 256u);
}

TEST_P(GenerateForScheme, NeighbouringScalesDifferFourfold) {
  const Synthetic synthetic{"noise", {DType::bfloat16, 8, k()}, 1, 3};
  const Generated made = generate(scheme(), "linear", "plain", synthetic, 3);
  const LinearTruth truth(made.input);
  const int64_t group = scheme().group();
  for (int64_t r = 0; r + 1 < 8; ++r) {
    const double here = truth.row(r)[0].scale;
    const double next =
        group == 0 ? truth.row(r + 1)[0].scale : truth.row(r)[static_cast<size_t>(group)].scale;
    EXPECT_GT(std::fabs(std::log2(here / next)), 1.0) << "row " << r;
  }
}

TEST_P(GenerateForScheme, TheSameSeedGivesTheSameInput) {
  const Synthetic synthetic{"noise", {DType::float16, 8, k()}, 2, 3};
  const Generated a = generate(scheme(), "linear", "plain", synthetic, 3),
                  b = generate(scheme(), "linear", "plain", synthetic, 3),
                  c = generate(scheme(), "linear", "plain", synthetic, 4);
  EXPECT_EQ(a.input.x, b.input.x);
  EXPECT_EQ(a.input.planes[0].bytes, b.input.planes[0].bytes);
  EXPECT_NE(a.input.x, c.input.x);
}

// The table and the generators are written apart: every entry of one has to be known to the other.
TEST_P(GenerateForScheme, EveryInputOfTheTableCanBeMade) {
  for (const LayoutInfo& layout : scheme().layouts()) {
    for (const char* op : {"quantize", "quantize_activation", "dequantize", "pack", "unpack", "linear"}) {
      const bool packs = std::string(op) == "pack" || std::string(op) == "unpack";
      if (packs == (layout.name == "plain")) continue;
      for (const Synthetic& input :
           synthetic_inputs(Kind::numerics, op, scheme(), layout.name, InputSet::few))
        EXPECT_NO_THROW(generate(scheme(), op, layout.name, input, input.seed))
            << input_name(input, op, layout.name);
    }
  }
}

// The tests' weights come in three dtypes, their rows have scales apart, and scales hold an odd factor (a
// power of two alone does not): the schemes that can be given such.
std::vector<size_t> suited_schemes() {
  std::vector<size_t> suited;
  for (size_t i = 0; i < schemes().size(); ++i) {
    const Scheme& scheme = *schemes()[i];
    const int64_t k = 3 * std::max<int64_t>(scheme.group(), 32);
    bool suits = true;
    for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32})
      suits = suits && !scheme.refusal({dtype, 37, k});
    if (!suits) continue;
    for (const PlaneSpec& spec : scheme.plane_specs({DType::bfloat16, 37, k}))
      if (spec.name.starts_with("scale"))
        suits = numel_of(spec.shape) >= 37 && spec.dtype != DType::float8_e8m0fnu;
    if (suits) suited.push_back(i);
  }
  return suited;
}

INSTANTIATE_TEST_SUITE_P(Schemes, GenerateForScheme, testing::ValuesIn(suited_schemes()),
                         [](const auto& info) { return std::string(schemes()[info.param]->name()); });

TEST(Generate, OneHotColumnsReachBothEnds) {
  for (int64_t i = 0; i < 96; ++i) EXPECT_EQ(one_hot_column(i, 96, 96), i);
  EXPECT_EQ(one_hot_column(0, 5, 96), 0);
  EXPECT_EQ(one_hot_column(4, 5, 96), 95);
}

TEST(Generate, UnknownGeneratorsAreRefused) {
  const Synthetic synthetic{"typo", {DType::bfloat16, 4, 32}, 1, 1};
  EXPECT_THROW(generate(*find_scheme("int8_row"), "linear", "plain", synthetic, 1), std::invalid_argument);
}

}  // namespace
}  // namespace qcts
