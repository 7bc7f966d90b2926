// SPDX-License-Identifier: BSD-3-Clause
// Tests the bound of sums that tensor cores make: a model of their arithmetic stays within it, and one that
// keeps fewer bits than it declares leaves it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reference/numerics/noise.h"
#include "reference/oracle/bound.h"

namespace qcts {
namespace {

double cut(double value, int lowest) { return std::ldexp(std::trunc(std::ldexp(value, -lowest)), lowest); }

// Adds up to `terms` products to `sum`: all are cut below 2^-fraction_bits of the largest, added exactly, and
// the result is cut.
double fused_step(double sum, std::span<const double> products, const FusedSums& fused) {
  double largest = std::fabs(sum), total = 0;
  for (const double product : products) largest = std::max(largest, std::fabs(product));
  if (largest == 0) return sum;
  const int lowest = std::ilogb(largest) - fused.fraction_bits;
  for (const double product : products) total += cut(product, lowest);
  total += cut(sum, lowest);
  return total == 0 ? 0 : cut(total, std::ilogb(total) - fused.result_bits);
}

double fused_sum(const std::vector<double>& products, const FusedSums& fused) {
  float promoted = 0;
  double sum = 0;
  for (size_t i = 0; i < products.size(); i += static_cast<size_t>(fused.terms)) {
    if (fused.promote_every > 0 && i > 0 && i % static_cast<size_t>(fused.promote_every) == 0) {
      promoted += static_cast<float>(sum);
      sum = 0;
    }
    const size_t count = std::min(products.size() - i, static_cast<size_t>(fused.terms));
    sum = fused_step(sum, std::span(products).subspan(i, count), fused);
  }
  return fused.promote_every > 0 ? static_cast<double>(promoted + static_cast<float>(sum)) : sum;
}

struct Case {
  std::vector<ExactWeight> row;
  std::vector<double> x, products;
};

// Products of powers of two and noise, so that many are far smaller than others.
Case case_of(int64_t n, uint64_t seed) {
  Case made;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<uint64_t>(i);
    const double w = std::round(noise(seed, at) * 256) / 256;
    made.row.push_back({.product = w, .code = w, .scale = 1});
    made.x.push_back(std::ldexp(std::round(noise(seed + 1, at) * 128) / 128,
                                static_cast<int>(splitmix64(seed + 2, at) % 9)));
    made.products.push_back(w * made.x.back());
  }
  return made;
}

constexpr FusedSums kAmpere = {8, 24, 23, 0}, kHopper = {16, 25, 23, 0}, kHopperFp8 = {32, 13, 13, 0},
                    kPromoted = {32, 13, 13, 128};

TEST(FusedBound, HoldsTheSumsOfTheDeclaredArithmetic) {
  for (const FusedSums& fused : {kAmpere, kHopper, kHopperFp8, kPromoted})
    for (const int64_t n : {1, 7, 32, 200, 1024, 4096})
      for (uint64_t seed = 0; seed < 40; ++seed) {
        const Case given = case_of(n, seed);
        const LinearOracle oracle = linear_oracle(given.row, given.x, 0, 0);
        const LinearBound bound = linear_bound(oracle, {.fused = fused}, {});
        const double got = static_cast<float>(fused_sum(given.products, fused));
        EXPECT_TRUE(accepts(oracle, bound, got))
            << fused.terms << " terms, n " << n << ", seed " << seed << ": " << got << " for " << oracle.y;
      }
}

TEST(FusedBound, RefusesSumsOfFewerBitsThanDeclared) {
  int narrow = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Case given = case_of(64, seed);
    const LinearOracle oracle = linear_oracle(given.row, given.x, 0, 0);
    const double got = static_cast<float>(fused_sum(given.products, kHopperFp8));
    narrow += !accepts(oracle, linear_bound(oracle, {.fused = kHopper}, {}), got);
  }
  EXPECT_GT(narrow, 35);
}

// Ampere aligns with a zero's exponent of -126: 0 * 2^93 cuts a product of 2^-76 away.
TEST(FusedBound, AllowsForZerosBesideLargeFactors) {
  const std::vector<ExactWeight> row = {{.product = 1, .code = 1, .scale = 1},
                                        {.product = 0, .code = 0, .scale = 1}};
  for (const bool after_sum : {false, true})
    for (const double other : {0x1p93, 1.0}) {
      const LinearStages stages = {.scale_after_sum = after_sum, .fused = kAmpere};
      const LinearOracle oracle = linear_oracle(row, std::vector<double>{0x1p-76, other}, 0, 0);
      EXPECT_EQ(accepts(oracle, linear_bound(oracle, stages, {}), 0), other > 1) << after_sum << " " << other;
    }
}

TEST(FusedBound, PromotionNarrowsAndIntegersStayExact) {
  const Case given = case_of(4096, 3);
  const LinearOracle oracle = linear_oracle(given.row, given.x, 0, 0);
  const auto error = [&](const LinearStages& stages) { return linear_bound(oracle, stages, {}).error; };
  EXPECT_LT(error({.fused = kPromoted}), error({.fused = kHopperFp8}) / 16);
  EXPECT_EQ(error({.accumulator = DType::int32, .fused = kHopperFp8}), error({.accumulator = DType::int32}));
}

TEST(FusedBound, SaysWhichBitsAreExact) {
  EXPECT_EQ(exact_fraction_bits({}), 23);
  EXPECT_EQ(exact_fraction_bits({.fused = kAmpere}), 23);
  EXPECT_EQ(exact_fraction_bits({.fused = kHopperFp8}), 13);
  EXPECT_GT(exact_fraction_bits({.accumulator = DType::int32}), 1000);
}

TEST(FusedBound, RefusesWhatNoProcessorDoes) {
  for (const FusedSums& fused : {FusedSums{0, 24, 23, 0}, FusedSums{8, 0, 23, 0}, FusedSums{8, 24, 0, 0},
                                 FusedSums{8, 24, 24, 0}, FusedSums{8, 24, 23, 4}, FusedSums{2048, 24, 23, 0},
                                 FusedSums{8, 65, 23, 0}, FusedSums{8, 24, 23, -8}})
    EXPECT_THROW(linear_bound({}, {.fused = fused}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace qcts
