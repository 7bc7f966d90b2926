// SPDX-License-Identifier: BSD-3-Clause
// Tests that what calls leave behind is seen, and a cache that fills once is not.
#include "suites/providers/footprint.h"

#include <array>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <time.h>
#include <unistd.h>

namespace qcts {
namespace {

constexpr uint64_t kCalls = 70;

Footprint with_threads(int count) {
  Footprint footprint;
  for (int i = 0; i < count; ++i) footprint.thread_ns[i] = 0;
  return footprint;
}

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
  EXPECT_THAT(effect(none, with_threads(70), with_threads(140)),
              testing::StartsWith("leaves threads running: 70 "));
  EXPECT_THAT(effect(none, {.ended_ns = 350'000}, {.ended_ns = 701'000}),
              testing::StartsWith("starts threads where 1 was asked: 350 us of 70 calls"));
  EXPECT_THAT(effect({.thread_ns = {{1, 0}, {2, 0}, {3, 0}}},
                     {.thread_ns = {{1, 900'000}, {2, 350'000}, {3, 10'000}}},
                     {.thread_ns = {{1, 1'900'000}, {2, 800'000}, {3, 500'000}}}),
              testing::StartsWith("works in 2 threads where 1 was asked"));
  EXPECT_THAT(effect(none, {.said_bytes = 70}, {.said_bytes = 140}),
              testing::StartsWith("writes to its standard output"));
  EXPECT_THAT(effect(none, none, {.has_our_cores = false}), testing::HasSubstr("processors"));
}

TEST(SideEffect, IsNotACacheThatFillsOnce) {
  const Footprint none, full{.private_bytes = 64 << 20, .descriptors = 100, .said_bytes = 5000};
  EXPECT_EQ(effect(none, full, full), "");
  EXPECT_EQ(effect(none, none, full), "");
  EXPECT_EQ(effect(full, full, none), "") << "memory that is given back";
  EXPECT_EQ(effect(none, {.ended_ns = 900'000}, {.ended_ns = 900'000}), "") << "a pool that grows once";
  EXPECT_EQ(effect({.thread_ns = {{1, 0}, {2, 0}}}, {.thread_ns = {{1, 900'000}, {2, 900'000}}},
                   {.thread_ns = {{1, 1'800'000}, {2, 900'000}}}),
            "")
      << "a pool that works once";
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

void work_for_a_millisecond() {
  timespec time{};
  do ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  while (time.tv_sec == 0 && time.tv_nsec < 1'000'000);
}

TEST(Footprint, TellsThreadsThatEnded) {
  const std::optional<Footprint> before = footprint_of(::getpid());
  std::thread(work_for_a_millisecond).join();
  const std::optional<Footprint> after = footprint_of(::getpid());
  EXPECT_EQ(after->thread_ns.size(), before->thread_ns.size());
  EXPECT_GE(after->ended_ns, before->ended_ns + 900'000);
}

}  // namespace
}  // namespace qcts
