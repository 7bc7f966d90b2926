// SPDX-License-Identifier: BSD-3-Clause
// Tests that a posted word wakes who awaits it, and that waiting ends.
#include "suites/host/words.h"

#include <thread>

#include <gtest/gtest.h>

namespace qcts {
namespace {

using std::chrono::milliseconds;

TEST(Words, APostWakesWhoAwaitsTheValue) {
  uint32_t word = 0;
  bool was_seen = false;
  std::jthread waiting([&] { was_seen = await(word, 2, milliseconds(60'000)); });
  post(word, 1);
  std::this_thread::sleep_for(milliseconds(10));
  post(word, 2);
  waiting.join();
  EXPECT_TRUE(was_seen);
}

TEST(Words, WaitingEnds) {
  const uint32_t word = 0;
  EXPECT_FALSE(await(word, 1, milliseconds(5)));
  EXPECT_TRUE(await(word, 0, milliseconds(0))) << "it has the value already";
}

}  // namespace
}  // namespace qcts
