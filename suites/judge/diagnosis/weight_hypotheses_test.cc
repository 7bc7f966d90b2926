// SPDX-License-Identifier: BSD-3-Clause
// Tests when wrong weights are explained: by all of them, and by enough of them.
#include "suites/judge/diagnosis/weight_hypotheses.h"

#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/inputs/generate.h"

namespace qcts {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kRows = 24, kColumns = 64;

struct Weights {
  Weights() {
    const Synthetic synthetic{Generator::noise, {DType::float32, kRows, kColumns}, 1, 1};
    input = generate(*find_scheme("int8_row"), Op::dequantize, kPlain, synthetic, 1).input;
    for (int64_t row = 0; row < kRows; ++row) {
      rows.emplace_back(kColumns);
      input.scheme->exact_row(input.planes, input.weight, row, rows.back());
    }
  }

  double right(int64_t row, int64_t column) const {
    const ExactWeight& weight = rows[static_cast<size_t>(row)][static_cast<size_t>(column)];
    return weight.product + weight.zero;
  }

  // The weights as a kernel reads them that gives `value` for each.
  WeightExplanation explained(const std::function<double(int64_t row, int64_t column)>& value,
                              int64_t columns = kColumns) const {
    SeenWeights seen{input.scheme, input.weight, &input.planes, 1, {}, {}, 0x1p-22};
    for (int64_t column = 0; column < columns; ++column) seen.columns.push_back(column);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t column = 0; column < columns; ++column) seen.values.push_back(value(row, column));
    return explain_weights(seen);
  }

  KernelInput input;
  std::vector<std::vector<ExactWeight>> rows;
};

double scaled_by_row_before(const Weights& w, int64_t row, int64_t column) {
  const auto before = static_cast<size_t>((row + kRows - 1) % kRows);
  return w.rows[static_cast<size_t>(row)][static_cast<size_t>(column)].code * w.rows[before][0].scale;
}

TEST(WeightHypotheses, OneMistakeIsNamed) {
  const Weights w;
  const WeightExplanation found =
      w.explained([&](int64_t row, int64_t column) { return scaled_by_row_before(w, row, column); });
  EXPECT_TRUE(found.is_explained());
  EXPECT_THAT(describe(found), HasSubstr("hypothesis: scale of the previous row (predicts "));
}

TEST(WeightHypotheses, OneThatStopsAtTheFirstRowIsNamedToo) {
  const Weights w;
  const WeightExplanation found = w.explained([&](int64_t row, int64_t column) {
    return row == 0 ? w.right(row, column) : scaled_by_row_before(w, row, column);
  });
  EXPECT_THAT(describe(found), HasSubstr("hypothesis: scale of the previous row (predicts "));
  EXPECT_THAT(describe(found), Not(HasSubstr("or else")));
}

TEST(WeightHypotheses, NotIfOneRightWeightContradicts) {
  const Weights w;
  const WeightExplanation found = w.explained([&](int64_t row, int64_t column) {
    return row == 7 && column == 9 ? w.right(row, column) : scaled_by_row_before(w, row, column);
  });
  EXPECT_FALSE(found.is_explained());
  EXPECT_THAT(describe(found), EndsWith("no single hypothesis explains them"));
}

TEST(WeightHypotheses, NotIfOneWrongWeightIsOtherwise) {
  const Weights w;
  const WeightExplanation found = w.explained([&](int64_t row, int64_t column) {
    return scaled_by_row_before(w, row, column) + (row == 7 && column == 9 ? 1 : 0);
  });
  EXPECT_FALSE(found.is_explained());
}

TEST(WeightHypotheses, NotOverFewValues) {
  const Weights w;
  for (const int64_t count : {1, 19})
    EXPECT_FALSE(w.explained([&](int64_t row, int64_t column) {
                    return row == 3 && column < count ? scaled_by_row_before(w, row, column)
                                                      : w.right(row, column);
                  }).is_explained());
}

TEST(WeightHypotheses, APlaceIsNamedIfItIsFullOfWrongWeights) {
  const Weights w;
  EXPECT_THAT(describe(w.explained([&](int64_t row, int64_t column) {
                return column == kColumns - 1 ? 0 : w.right(row, column);
              })),
              EndsWith("hypothesis: the weight is dropped (predicts 24 of 24), all in the last column"));
  EXPECT_THAT(describe(w.explained([&](int64_t row, int64_t column) {
                return column == kColumns - 1 && row < 5 ? 0 : w.right(row, column);
              })),
              Not(HasSubstr("all in the last column")));
}

TEST(WeightHypotheses, OnlyWhatWasProbedIsCalledRight) {
  const Weights w;
  const auto right = [&](int64_t row, int64_t column) { return w.right(row, column); };
  EXPECT_EQ(describe(w.explained(right)), "all 1536 weights are right");
  EXPECT_EQ(describe(w.explained(right, 8)), "the 192 probed weights are right");
}

// 0 times a weight that is not a number is NaN, so it says nothing about the other weights of its row.
TEST(WeightHypotheses, ARowWithANaNIsNoEvidenceAgainstItsOthers) {
  Weights w;
  for (Plane& plane : w.input.planes)
    if (plane.name == "scale") std::fill_n(plane.bytes.begin(), 4, std::byte{0xff});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const WeightExplanation found =
      w.explained([&](int64_t row, int64_t column) { return row == 0 ? nan : w.right(row, column); });
  EXPECT_EQ(found.wrong, 0u);
}

}  // namespace
}  // namespace qcts
