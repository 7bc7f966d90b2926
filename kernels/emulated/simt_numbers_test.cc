// SPDX-License-Identifier: BSD-3-Clause
// Tests the executor's arithmetic where a GPU differs from C++.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "kernels/cuda/device.h"

namespace qcts::executor_tests {
namespace {

using namespace qcts::device;

// A conversion in PTX keeps neither the sign nor the fraction of a NaN.
TEST(ExecutorNumbers, ConvertsEveryNanToOne) {
  for (const uint16_t nan : {uint16_t{0x7C01}, uint16_t{0x7E00}, uint16_t{0xFFFF}})
    EXPECT_EQ(bits_of(f16_to_f32(nan)), 0x7FFFFFFFu) << nan;
  for (const uint32_t nan : {0x7F800001u, 0x7FC00000u, 0xFFC00000u}) {
    EXPECT_EQ(f32_to_f16(float_of(nan)), 0x7FFF) << nan;
    EXPECT_EQ(f32_to_bf16(float_of(nan)), 0x7FFF) << nan;
  }
  EXPECT_EQ(bits_of(f16_to_f32(0xFC00)), 0xFF800000u) << "an infinity is none";
}

// If one argument is a NaN, a GPU returns the other one. glibc's fmaxf and fminf do not if the NaN is
// signalling.
TEST(ExecutorNumbers, TakesTheNumberBesideANan) {
  for (const uint32_t nan : {0x7F800001u, 0xFFA00000u, 0x7FC00000u}) {
    EXPECT_EQ(fmaxf(float_of(nan), -3), -3) << nan;
    EXPECT_EQ(fmaxf(-3, float_of(nan)), -3) << nan;
    EXPECT_EQ(fminf(float_of(nan), INFINITY), INFINITY) << nan;
    EXPECT_EQ(fminf(INFINITY, float_of(nan)), INFINITY) << nan;
    EXPECT_TRUE(std::isnan(fmaxf(float_of(nan), float_of(nan)))) << nan;
    EXPECT_TRUE(std::isnan(fminf(float_of(nan), float_of(nan)))) << nan;
  }
  EXPECT_EQ(fmaxf(2, 3), 3);
  EXPECT_EQ(fminf(2, 3), 2);
}

TEST(ExecutorNumbers, WrapsIntegerDotProducts) {
  EXPECT_EQ(dot_s8(0x7F7F7F7F, 0x7F7F7F7F, INT32_MAX), INT32_MIN + 4 * 127 * 127 - 1);
  EXPECT_EQ(dot_s8(0x80808080, 0x7F7F7F7F, INT32_MIN), INT32_MAX - 4 * 128 * 127 + 1);
}

}  // namespace
}  // namespace qcts::executor_tests
