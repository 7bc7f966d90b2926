// SPDX-License-Identifier: BSD-3-Clause
// Tests of the tester: writes outside a buffer must be detected wherever they are.
#include "suites/providers/memory/arena.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace qcts {
namespace {

class ArenaPoison : public testing::TestWithParam<Poison> {};

TEST_P(ArenaPoison, OneByteOutsideIsSeen) {
  for (const ptrdiff_t where : {ptrdiff_t{-1}, ptrdiff_t{-256}, ptrdiff_t{12}, ptrdiff_t{267}}) {
    GuardedBuffer buffer("y", 12, 3);
    buffer.poison(GetParam());
    EXPECT_FALSE(buffer.violation().has_value());
    buffer.data()[where] ^= std::byte{0x80};
    ASSERT_TRUE(buffer.violation().has_value()) << "byte " << where;
    EXPECT_TRUE(buffer.violation()->starts_with("y: 1 byte written ")) << *buffer.violation();
  }
}

TEST_P(ArenaPoison, WritesIntoTheRowsAreAllowedAndIntoTheGapsSeen) {
  GuardedBuffer buffer("y", 3, 4, 10, 0);
  buffer.poison(GetParam());
  for (size_t row = 0; row < 3; ++row) std::fill_n(buffer.data() + row * 10, 4, std::byte{7});
  EXPECT_FALSE(buffer.violation().has_value());
  EXPECT_EQ(buffer.read(), std::vector<std::byte>(12, std::byte{7}));
  buffer.data()[14] ^= std::byte{1};
  ASSERT_TRUE(buffer.violation().has_value());
  EXPECT_NE(buffer.violation()->find("between two rows, the first at byte 4 of row 1"), std::string::npos)
      << *buffer.violation();
}

INSTANTIATE_TEST_SUITE_P(All, ArenaPoison, testing::Values(Poison::nan, Poison::zeros, Poison::previous));

TEST(Arena, AlignmentIsExactlyAsAsked) {
  for (const size_t misalign : {0u, 1u, 2u, 6u, 33u}) {
    GuardedBuffer buffer("x", 100, misalign);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, misalign);
  }
}

TEST(Arena, PoisonFillsWhatItSays) {
  GuardedBuffer buffer("y", 2, 2, 4, 0);
  const std::vector<std::byte> answer = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  buffer.poison(Poison::nan);
  EXPECT_EQ(buffer.read(), std::vector<std::byte>(4, std::byte{0xff}));
  buffer.poison(Poison::zeros);
  EXPECT_EQ(buffer.read(), std::vector<std::byte>(4, std::byte{0}));
  buffer.poison(Poison::previous, answer);
  EXPECT_EQ(buffer.read(), answer);
}

TEST(ArenaDeathTest, FarBeyondTheEndsIsNoMemory) {
  GuardedBuffer buffer("y", 1000, 3);
  const auto write = [&](ptrdiff_t where) { *static_cast<volatile std::byte*>(buffer.data() + where) = {}; };
  write(0);
  EXPECT_DEATH(write(1000 + 256 + 128), "");
  EXPECT_DEATH(write(-8192), "");
  EXPECT_DEATH(write(500'000), "");
}

TEST(Arena, NoElementsHaveNoAddress) {
  GuardedBuffer buffer("empty", 0, 0);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_TRUE(buffer.read().empty());
}

TEST(Arena, OverlappingRowsAndWrongLengthsAreRefused) {
  EXPECT_THROW(GuardedBuffer("y", 2, 8, 4, 0), std::invalid_argument);
  GuardedBuffer buffer("y", 4, 0);
  EXPECT_THROW(buffer.write(std::vector<std::byte>(3)), std::invalid_argument);
}

}  // namespace
}  // namespace qcts
