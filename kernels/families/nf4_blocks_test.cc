// SPDX-License-Identifier: BSD-3-Clause
// Tests what the AVX2 variant of nf4 relies on and the suites' inputs hit only by chance: counting bounds
// gives the nearest code for every value.
#include "kernels/families/nf4_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/families/elements.h"

namespace qcts {
namespace {

constexpr float kNf4Values[16] = {-1.0f,   -0.6962f, -0.5251f, -0.3949f, -0.2844f, -0.1848f, -0.0911f, 0.0f,
                                  0.0796f, 0.1609f,  0.2461f,  0.3379f,  0.4407f,  0.5626f,  0.7230f,  1.0f};

class Nf4Bounds : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    for (int code = 0; code < 16; ++code) values_[code] = scalar::round_to(GetParam(), kNf4Values[code]);
    nf4_bounds(GetParam(), values_, bounds_);
  }
  int code_by_bounds(float value) const {
    int code = 0;
    for (const float bound : bounds_) code += value >= bound ? 1 : 0;
    return code;
  }
  int nearest(float value) const {
    return nf4_nearest(GetParam(), values_, scalar::round_to(GetParam(), value));
  }
  float values_[16], bounds_[15];
};

TEST_P(Nf4Bounds, AreWhereTheNearestCodeChanges) {
  for (int code = 0; code < 15; ++code) {
    const float bound = bounds_[code], below = std::nextafterf(bound, -2.0f);
    EXPECT_EQ(nearest(bound), code + 1) << std::hexfloat << bound;
    EXPECT_EQ(nearest(below), code) << std::hexfloat << below;
  }
}

// All values of a 16-bit dtype between -1 and 1; for float32 those that bfloat16 holds.
TEST_P(Nf4Bounds, CountToTheNearestCode) {
  const uint32_t dtype = GetParam() == QCTS_F16 ? QCTS_F16 : QCTS_BF16;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = scalar::load(dtype, &half, 0);
    if (!(std::fabs(value) <= 1)) continue;
    ASSERT_EQ(code_by_bounds(value), nearest(value)) << std::hexfloat << value;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Nf4Bounds,
                         testing::Values(uint32_t{QCTS_F32}, uint32_t{QCTS_F16}, uint32_t{QCTS_BF16}));

}  // namespace
}  // namespace qcts
