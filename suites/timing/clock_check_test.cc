// SPDX-License-Identifier: BSD-3-Clause
// Tests that events are believed only as far as this process's clock confirms them.
#include "suites/timing/clock_check.h"

#include <gtest/gtest.h>

namespace qcts {
namespace {

constexpr bool kLast = true;

TEST(ClockCheck, EventsThatTellTheTimeOfTheClockAreBelieved) {
  ClockCheck check;
  EXPECT_TRUE(check.take({20400, 20000, 100}, !kLast));
  EXPECT_TRUE(check.take({20999, 20000, 100}, !kLast)) << "5 % may be between the graphs";
  EXPECT_EQ(check.doubt(), "");
  EXPECT_EQ(check.batches(), 2u);
  EXPECT_NEAR(check.largest_ratio(), 1.05, 1e-3);
}

TEST(ClockCheck, WhatAnEmptyBatchTakesIsAllowed) {
  ClockCheck check;
  EXPECT_FALSE(check.take({22000, 20000, 100}, !kLast));
  check.set_empty({100, 10});
  EXPECT_TRUE(check.take({22000, 20000, 100}, !kLast));
  EXPECT_FALSE(check.take({22200, 20000, 100}, !kLast));
  EXPECT_EQ(check.timed_again(), 2u);
  EXPECT_EQ(check.doubt(), "") << "these batches do not count";
}

// Events that a provider has patched, or work that goes on after the last of them.
TEST(ClockCheck, AShorterTimeThanTheClocksIsDoubted) {
  ClockCheck check;
  check.set_empty({100, 5});
  EXPECT_TRUE(check.take({20700, 20000, 100}, !kLast));
  EXPECT_FALSE(check.take({20700, 10000, 100}, !kLast));
  EXPECT_FALSE(check.take({20700, 10000, 100}, kLast));
  EXPECT_EQ(check.batches(), 2u);
  EXPECT_EQ(check.doubt(),
            "1 of 2 batches took longer by the judge's clock than by its events, up to 2.01 times as long");
}

TEST(ClockCheck, NoTimeAtAllIsDoubted) {
  for (const double events_us : {0.0, -5.0}) {
    ClockCheck check;
    EXPECT_FALSE(check.take({20000, events_us, 100}, kLast));
    EXPECT_NE(check.doubt(), "");
  }
}

// A host may say anything.
TEST(ClockCheck, WhatIsNoNumberIsDoubted) {
  ClockCheck check;
  EXPECT_FALSE(check.take({20000, __builtin_nan(""), 100}, kLast));
  EXPECT_FALSE(check.take({20000, __builtin_inf(), 100}, kLast));
  EXPECT_NE(check.doubt(), "");
}

}  // namespace
}  // namespace qcts
