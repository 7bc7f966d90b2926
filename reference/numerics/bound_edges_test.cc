// The edges of linear's bound, which a half-ulp formula gets wrong.
#include "reference/numerics/bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

}  // namespace
}  // namespace qcts
