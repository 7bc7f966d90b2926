// SPDX-License-Identifier: BSD-3-Clause
// Goldens define weights by seed, so these bits may never change. fixtures/make/shared/test_noise.py has the
// same constants.
#include "reference/numerics/noise.h"

#include <gtest/gtest.h>

#include <cstring>

namespace qcts {
namespace {

// Reference stream of seed 1234567, as printed by Vigna's splitmix64.c.
TEST(Noise, SplitmixKnownAnswers) {
  const uint64_t want[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                           4593380528125082431u, 16408922859458223821u};
  for (uint64_t i = 0; i < std::size(want); ++i) EXPECT_EQ(splitmix64(1234567, i), want[i]);
}

TEST(Noise, ValuesKnownAnswers) {
  const double want[] = {-0.65057373046875, -0.785247802734375, 0.092193603515625, 0.138336181640625};
  for (uint64_t i = 0; i < std::size(want); ++i) EXPECT_EQ(noise(7, i), want[i]);
}

// numpy and torch 2.13.0: noise(7, 4, 2**-4) cast to each type.
TEST(Noise, BytesKnownAnswers) {
  const std::vector<std::byte> f32 = noise_bytes(7, 4, DType::float32, 0x1p-4);
  const std::vector<std::byte> f16 = noise_bytes(7, 4, DType::float16, 0x1p-4);
  const std::vector<std::byte> bf16 = noise_bytes(7, 4, DType::bfloat16, 0x1p-4);
  const uint32_t want32[] = {0xBD268C00, 0xBD490600, 0x3BBCD000, 0x3C0DA800};
  const uint16_t want16[] = {0xA934, 0xAA48, 0x1DE6, 0x206D}, want_bf16[] = {0xBD27, 0xBD49, 0x3BBD, 0x3C0E};
  EXPECT_EQ(f32.size(), sizeof want32);
  EXPECT_EQ(std::memcmp(f32.data(), want32, sizeof want32), 0);
  EXPECT_EQ(std::memcmp(f16.data(), want16, sizeof want16), 0);
  EXPECT_EQ(std::memcmp(bf16.data(), want_bf16, sizeof want_bf16), 0);
}

}  // namespace
}  // namespace qcts
