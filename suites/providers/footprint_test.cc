// SPDX-License-Identifier: BSD-3-Clause
// Tests that what calls leave behind is seen, and a cache that fills once is not.
#include "suites/providers/footprint.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace qcts {
namespace {

constexpr uint64_t kCalls = 70;

std::string effect(const Footprint& first, const Footprint& second, const Footprint& third) {
  return side_effect(std::array{first, second, third}, kCalls);
}

TEST(SideEffect, IsWhatEveryCallAdds) {
  const Footprint none;
  EXPECT_EQ(effect(none, none, none), "");
  EXPECT_THAT(effect(none, {.private_bytes = 143360}, {.private_bytes = 300000}),
              testing::StartsWith("keeps memory: 143360 bytes of 70 calls"));
  EXPECT_THAT(effect(none, {.descriptors = 20}, {.descriptors = 40}),
              testing::StartsWith("leaves descriptors open: 20 "));
  EXPECT_THAT(effect(none, {.threads = 70}, {.threads = 140}),
              testing::StartsWith("leaves threads running: 70 "));
  EXPECT_THAT(effect(none, {.said_bytes = 70}, {.said_bytes = 140}),
              testing::StartsWith("writes to its standard output"));
  EXPECT_THAT(effect(none, none, {.has_our_cores = false}), testing::HasSubstr("processors"));
}

TEST(SideEffect, IsNotACacheThatFillsOnce) {
  const Footprint none, full{.private_bytes = 64 << 20, .descriptors = 100, .said_bytes = 5000};
  EXPECT_EQ(effect(none, full, full), "");
  EXPECT_EQ(effect(none, none, full), "");
  EXPECT_EQ(effect(full, full, none), "") << "memory that is given back";
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
