// SPDX-License-Identifier: BSD-3-Clause
// Tests the roof: a problem's bytes at memory speed, its arithmetic at the speed of its variant.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "kernels/machine/machine.h"
#include "suites/timing/roof.h"

namespace qcts {
namespace {

// The roof of a problem is the longer of its two times in the same rounds.
TEST(Roof, IsTheSlowerOfMemoryAndArithmetic) {
  if (!machine().has("avx2") || !machine().has("fma")) GTEST_SKIP() << "needs avx2 and fma";
  RoofRequest request;
  request.variant = "avx2";
  request.stream.read_bytes = 4096;
  request.operations = 2e9;
  Roof bound_by_arithmetic(request);
  ASSERT_NE(bound_by_arithmetic.peak(), nullptr);
  EXPECT_NE(bound_by_arithmetic.peak()->arithmetic, Arithmetic::bfloat16);  // AVX2 has no bfloat16 products
  std::vector<Series> series;
  bound_by_arithmetic.add_series(series, true);
  ASSERT_EQ(series.size(), 2u);
  series[0].us = {5, 100, 7};
  series[1].us = {50, 60, std::nan("")};
  const std::vector<double> roof = Roof::roof_us(series);
  EXPECT_EQ(roof[0], 50);
  EXPECT_EQ(roof[1], 100);
  EXPECT_TRUE(std::isnan(roof[2]));
  // 2 GFLOP, scaled from the series' smaller amount of work: between 1 and 1000 GFLOP/s on any core.
  const double us = series[1].time_once();
  EXPECT_GT(bound_by_arithmetic.peak_rate(us), 1e9);
  EXPECT_LT(bound_by_arithmetic.peak_rate(us), 1e12);
  request.int8_x = true;
  EXPECT_EQ(Roof(request).peak()->arithmetic, Arithmetic::int8);
  request.variant = "scalar";
  EXPECT_EQ(Roof(request).peak(), nullptr);
}

TEST(Roof, OfAProblemIsMadeOfItsOwnProducts) {
  const auto loop = [](Arithmetic arithmetic) { return PeakLoop{"", "avx2", arithmetic, 1, nullptr}; };
  const PeakLoop floats = loop(Arithmetic::float32), bfloats = loop(Arithmetic::bfloat16),
                 words = loop(Arithmetic::int16), bytes = loop(Arithmetic::int8),
                 nibbles = loop(Arithmetic::int8_by_int4);
  const RoofRequest weight_only{.integers = true, .nibbles = true}, of_bytes{.integers = true}, of_floats{},
      wide_x{.integers = true, .nibbles = true, .x_dtype = DType::float32},
      bytes_by_bytes{.int8_x = true, .integers = true},
      bytes_by_nibbles{.int8_x = true, .integers = true, .nibbles = true};
  for (const RoofRequest& request : {weight_only, of_bytes, of_floats, wide_x}) {
    EXPECT_TRUE(can_multiply(floats, request));
    EXPECT_TRUE(can_multiply(bytes, request));
  }
  EXPECT_TRUE(can_multiply(words, weight_only));
  EXPECT_TRUE(can_multiply(words, of_bytes));
  EXPECT_FALSE(can_multiply(words, of_floats));
  EXPECT_FALSE(can_multiply(words, wide_x));
  EXPECT_TRUE(can_multiply(nibbles, weight_only));
  EXPECT_FALSE(can_multiply(nibbles, of_bytes));
  EXPECT_FALSE(can_multiply(nibbles, wide_x));
  EXPECT_TRUE(can_multiply(bfloats, weight_only));
  EXPECT_FALSE(can_multiply(bfloats, wide_x));
  for (const RoofRequest& request : {bytes_by_bytes, bytes_by_nibbles}) {
    EXPECT_FALSE(can_multiply(floats, request));
    EXPECT_FALSE(can_multiply(bfloats, request));
    EXPECT_TRUE(can_multiply(bytes, request));
    EXPECT_TRUE(can_multiply(words, request));
    EXPECT_EQ(can_multiply(nibbles, request), request.nibbles);
  }
}

TEST(PeakLoops, KnowNothingNewerThanTheVariant) {
  for (const char* variant :
       {"scalar", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "avx512vbmi", "amx", "aten"}) {
    std::set<Arithmetic> seen;
    for (const PeakLoop* loop : peak_loops(variant)) {
      EXPECT_EQ(missing_feature(loop->variant), nullptr) << loop->name;
      EXPECT_TRUE(seen.insert(loop->arithmetic).second) << "two loops of one kind for " << variant;
      EXPECT_TRUE(std::string(variant) != "avx2" || std::string(loop->variant) == "avx2") << loop->name;
    }
    EXPECT_TRUE(std::string(variant) != "scalar" || seen.empty());
  }
}

}  // namespace
}  // namespace qcts
