// SPDX-License-Identifier: BSD-3-Clause
// Tests that what calls leave behind is seen, and a cache that fills once is not.
#include "suites/providers/footprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace qcts {
namespace {

constexpr uint64_t kCalls = 70;

TEST(SideEffect, IsWhatEveryCallAdds) {
  const Footprint none;
  EXPECT_EQ(side_effect(none, none, none, kCalls), "");
  EXPECT_THAT(side_effect(none, {.private_bytes = 71680}, {.private_bytes = 150000}, kCalls),
              testing::StartsWith("keeps memory: 71680 bytes of 70 calls"));
  EXPECT_THAT(side_effect(none, {.descriptors = 20}, {.descriptors = 40}, kCalls),
              testing::StartsWith("leaves descriptors open: 20 "));
  EXPECT_THAT(side_effect(none, {.threads = 70}, {.threads = 140}, kCalls),
              testing::StartsWith("leaves threads running: 70 "));
  EXPECT_THAT(side_effect(none, {.said_bytes = 70}, {.said_bytes = 140}, kCalls),
              testing::StartsWith("writes to its standard output"));
  EXPECT_THAT(side_effect(none, none, {.has_our_cores = false}, kCalls), testing::HasSubstr("processors"));
}

TEST(SideEffect, IsNotACacheThatFillsOnce) {
  const Footprint none, full{.private_bytes = 64 << 20, .descriptors = 100, .said_bytes = 5000};
  EXPECT_EQ(side_effect(none, full, full, kCalls), "");
  EXPECT_EQ(side_effect(none, none, full, kCalls), "");
  EXPECT_EQ(side_effect(full, full, none, kCalls), "") << "what is given back";
}

TEST(Footprint, IsReadFromTheSystem) {
  const std::optional<Footprint> before = footprint_of(::getpid());
  ASSERT_TRUE(before);
  EXPECT_GT(before->private_bytes, 0u);
  EXPECT_TRUE(before->has_our_cores);
  const int copy = ::dup(STDIN_FILENO);
  EXPECT_EQ(footprint_of(::getpid())->descriptors, before->descriptors + 1);
  ::close(copy);
}

}  // namespace
}  // namespace qcts
