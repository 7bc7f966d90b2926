// SPDX-License-Identifier: BSD-3-Clause
// Tests the edges of linear's bound, where a half-ulp formula is wrong.
#include "reference/oracle/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

LinearOracle oracle_of(double y) {
  LinearOracle oracle;
  oracle.y = y;
  oracle.terms = oracle.groups = 1;
  return oracle;
}

TEST(LinearBound, WithoutErrorIsTheCorrectlyRoundedValueAlone) {
  for (double y : {1.0, 1 + 0x1p-8 + 0x1p-30, -0x1p-126, 0x1p-133, 3.0e38}) {
    const LinearOracle oracle = oracle_of(y);
    const LinearBound bound = linear_bound(oracle, {.accumulator = DType::int32}, {.y = DType::bfloat16});
    const double right = round_to(DType::bfloat16, y);
    EXPECT_TRUE(accepts(oracle, bound, right)) << y;
    const uint64_t bits = encode_float(DType::bfloat16, right);
    EXPECT_FALSE(accepts(oracle, bound, decode_float(DType::bfloat16, bits + 1))) << y;
    EXPECT_FALSE(accepts(oracle, bound, decode_float(DType::bfloat16, bits - 1))) << y;
  }
}

TEST(LinearBound, AtATieLetsBothNeighboursPassOnceThereIsError) {
  LinearOracle oracle = oracle_of(1 + 0x1p-8);
  oracle.abs_product = oracle.abs_weight = 1;
  const LinearBound bound = linear_bound(oracle, {}, {.y = DType::bfloat16});
  EXPECT_TRUE(accepts(oracle, bound, 1.0));
  EXPECT_TRUE(accepts(oracle, bound, 1 + 0x1p-7));
  EXPECT_FALSE(accepts(oracle, bound, 1 - 0x1p-8));
  EXPECT_FALSE(accepts(oracle, bound, 1 + 0x1p-6));
}

TEST(LinearBound, OverflowPassesOnlyWhereASumMayRoundToInfinity) {
  const double inf = std::numeric_limits<double>::infinity();
  LinearOracle oracle = oracle_of(65519.995);
  oracle.abs_product = oracle.abs_weight = 65519.995;
  LinearBound bound = linear_bound(oracle, {}, {.y = DType::float16});
  EXPECT_TRUE(accepts(oracle, bound, 65504));
  EXPECT_TRUE(accepts(oracle, bound, inf));
  EXPECT_FALSE(accepts(oracle, bound, -inf));
  oracle.y = 65400;
  bound = linear_bound(oracle, {}, {.y = DType::float16});
  EXPECT_FALSE(accepts(oracle, bound, inf));
}

TEST(LinearBound, NanPassesOnlyForNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  LinearOracle oracle = oracle_of(1);
  EXPECT_FALSE(accepts(oracle, linear_bound(oracle, {}, {}), nan));
  oracle.y = nan;
  EXPECT_TRUE(accepts(oracle, linear_bound(oracle, {}, {}), nan));
  EXPECT_FALSE(accepts(oracle, linear_bound(oracle, {}, {}), 1.0));
  oracle.y = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(accepts(oracle, linear_bound(oracle, {}, {}), oracle.y));
  EXPECT_FALSE(accepts(oracle, linear_bound(oracle, {}, {}), -oracle.y));
}

TEST(LinearBound, GammaIsInfiniteWhereItsPremiseFails) {
  EXPECT_DOUBLE_EQ(gamma(1024, 0x1p-24), 1024 * 0x1p-24 / (1 - 1024 * 0x1p-24));
  EXPECT_TRUE(std::isinf(gamma(256, 0x1p-8)));
}

// Computes every sum of LinearOracle over all k, term by term, including zeros.
LinearOracle by_formula(std::span<const ExactWeight> row, std::span<const double> x, double bias,
                        size_t group, double o) {
  LinearOracle want;
  for (size_t first = 0; first < row.size(); first += group) {
    double product = 0, zero = 0, weight = 0;
    for (size_t k = first; k < std::min(first + group, row.size()); ++k) {
      const ExactWeight& w = row[k];
      want.y += x[k] * w.product;
      if (w.zero != 0) want.y += x[k] * w.zero;
      want.abs_product += std::fabs(x[k] * w.product);
      want.abs_zero += std::fabs(x[k] * w.zero);
      want.abs_weight += std::fabs(x[k] * (w.product + w.zero));
      want.abs_code += std::fabs(x[k] * w.code);
      want.abs_x += std::fabs(x[k]);
      want.sum_abs_weight += std::fabs(w.product) + std::fabs(w.zero);
      want.sum_abs_scale += std::fabs(w.scale);
      want.sum_abs_code += std::fabs(w.code);
      product += x[k] * w.product;
      zero += x[k] * w.zero;
      weight += w.product;
    }
    want.group_product += std::fabs(product);
    want.group_zero += std::fabs(zero);
    want.group_coded += std::fabs(product + o * weight);
    want.group_offset += std::fabs(o * weight);
    ++want.groups;
  }
  want.y += bias;
  return want;
}

void expect_same_bits(const LinearOracle& got, const LinearOracle& want) {
  for (double LinearOracle::*sum :
       {&LinearOracle::y, &LinearOracle::abs_product, &LinearOracle::abs_zero, &LinearOracle::abs_weight,
        &LinearOracle::abs_code, &LinearOracle::abs_x, &LinearOracle::sum_abs_weight,
        &LinearOracle::sum_abs_scale, &LinearOracle::sum_abs_code, &LinearOracle::group_product,
        &LinearOracle::group_zero, &LinearOracle::group_coded, &LinearOracle::group_offset})
    EXPECT_TRUE(std::bit_cast<uint64_t>(got.*sum) == std::bit_cast<uint64_t>(want.*sum) ||
                (std::isnan(got.*sum) && std::isnan(want.*sum)))
        << got.*sum << " " << want.*sum;
  EXPECT_EQ(got.groups, want.groups);
}

// Terms are omitted only if they are 0: not where a weight or an x is NaN or Inf.
TEST(LinearOracle, LeavesOutOnlyWhatIsZero) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                   kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr size_t kTerms = 37;
  for (const double strange : {1.0, 0.0, -0.0, kInfinity, kNan, 0x1.8p1023})
    for (const char* place : {"product", "zero", "code", "x"})
      for (const bool has_zero : {false, true})
        for (const bool one_hot : {false, true}) {
          std::vector<ExactWeight> row(kTerms);
          std::vector<double> x(kTerms);
          for (size_t k = 0; k < kTerms; ++k) {
            const double code = noise(1, k), scale = 1 + noise(2, k / 8) / 8;
            row[k] = {
                .product = code * scale, .zero = has_zero ? noise(3, k) : 0, .code = code, .scale = scale};
            if (one_hot ? k == 5 : k % 3 != 0) x[k] = noise(4, k);
          }
          for (const size_t at :
               {size_t{5}, size_t{6}}) {  // one position where x is not 0, and one where it is
            std::vector<ExactWeight> changed = row;
            std::vector<double> changed_x = x;
            (place[0] == 'p'   ? changed[at].product
             : place[0] == 'z' ? changed[at].zero
             : place[0] == 'c' ? changed[at].code
                               : changed_x[at]) = strange;
            for (const int64_t group : {0, 8})
              expect_same_bits(linear_oracle(changed, changed_x, 0.5, group, 0.25),
                               by_formula(changed, changed_x, 0.5, group ? 8 : kTerms, 0.25));
          }
        }
}

// The sum is 1 + above, with nothing to round but the bias addition and y.
LinearBound bound_of_one_term(double above, double bias, const LinearStages& stages) {
  const std::vector<ExactWeight> row = {{.product = 1 + above, .code = 1, .scale = 1 + above}};
  const std::vector<double> x = {1};
  const LinearDTypes dtypes = {DType::float32, DType::float32, DType::bfloat16};
  return linear_bound(linear_oracle(row, x, bias, 0), stages, dtypes);
}

// 1 + 2^-8 lies between two values of bfloat16, and 2^-30 more is lost when the bias is added in float32: the
// sum then rounds to 1, otherwise to 1 + 2^-7. A bias that is added to a sum of bfloat16 is wrong in both.
TEST(LinearBound, AddsTheBiasInTheDeclaredType) {
  const LinearStages wide = {.accumulator = DType::float64, .output_cast = DType::float32};
  LinearStages narrow = wide;
  narrow.bias_in_output_cast = true;
  const auto takes = [](const LinearBound& bound, double got) {
    return bound.low <= got && got <= bound.high;
  };
  const double bias = 0x1p-8 + 0x1p-30;
  EXPECT_TRUE(takes(bound_of_one_term(0, bias, wide), 1 + 0x1p-7));
  EXPECT_FALSE(takes(bound_of_one_term(0, bias, wide), 1));
  EXPECT_TRUE(takes(bound_of_one_term(0, bias, narrow), 1 + 0x1p-7));
  EXPECT_TRUE(takes(bound_of_one_term(0, bias, narrow), 1));
  const double above = 0x1p-8 + 0x1p-12;  // in bfloat16 2^-7, and with another 2^-8 then 2^-6
  for (const LinearStages& stages : {wide, narrow}) {
    EXPECT_TRUE(takes(bound_of_one_term(above, 0x1p-8, stages), 1 + 0x1p-7));
    EXPECT_FALSE(takes(bound_of_one_term(above, 0x1p-8, stages), 1 + 0x1p-6));
  }
  // Without an output_cast the flag says nothing.
  LinearStages no_cast = narrow;
  no_cast.output_cast.reset();
  EXPECT_FALSE(takes(bound_of_one_term(0, bias, no_cast), 1));
}

// An infinite x times the zero term of a weight without one would be NaN.
TEST(LinearOracle, KeepsAnInfiniteX) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<ExactWeight> row(2, {.product = -0.5, .zero = 0, .code = -1, .scale = 0.5});
  const std::vector<double> x = {1, kInfinity};
  EXPECT_EQ(linear_oracle(row, x, 0.5, 0).y, -kInfinity);
  row[1].zero = 0.25;
  EXPECT_TRUE(std::isnan(linear_oracle(row, x, 0.5, 0).y));
}

}  // namespace
}  // namespace qcts
