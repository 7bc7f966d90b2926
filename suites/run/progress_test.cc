// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/progress.h"

#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qcts {
namespace {

using ::testing::HasSubstr;
using ::testing::Le;

TEST(ProgressLine, SaysHowMuchHowManyFailedAndHowLong) {
  const ProgressState state{120, 480, 3, 60, "numerics.linear/int8_row/noise_m5_n37_k216_bf16/builtin_avx2"};
  EXPECT_EQ(progress_line(state, 120),
            "[120/480] 3 failed  1:00, about 3:00 left  "
            "numerics.linear/int8_row/noise_m5_n37_k216_bf16/builtin_avx2");
  EXPECT_EQ(progress_line(state, 79),
            "[120/480] 3 failed  1:00, about 3:00 left  numerics.linear/int8_row/noise_m5...");
  EXPECT_EQ(progress_line(state, 50), "[120/480] 3 failed  1:00, about 3:00 left");
}

TEST(ProgressLine, FitsEveryWidth) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const size_t total = random() % 1000000;
    const ProgressState state{random() % (total + 1), total, random() % 1000,
                              static_cast<double>(random() % 100000), std::string(random() % 150, 'x')};
    const size_t columns = 20 + random() % 120;
    ASSERT_THAT(columns_of(progress_line(state, columns)), Le(columns));
  }
}

TEST(ClockText, HasHoursOnlyWhereThereAreSome) {
  EXPECT_EQ(clock_text(7.9), "0:07");
  EXPECT_EQ(clock_text(754), "12:34");
  EXPECT_EQ(clock_text(3723), "1:02:03");
}

struct Harness {
  std::ostringstream out;
  Progress::Clock::time_point now{};
  Screen screen;

  Progress::Options options() {
    return {.enabled = true, .out = &out, .screen = [this] { return screen; }, .now = [this] { return now; }};
  }
};

TEST(Progress, WritesALineAMinuteWhereThereIsNoTerminal) {
  Harness harness;
  {
    Progress progress(harness.options());
    progress.say("starting 4 providers");
    progress.start(600);
    for (int second = 0; second < 150; ++second) {
      harness.now += std::chrono::seconds(1);
      progress.wait({"numerics.linear/int8_row/a"});
      progress.saw(second == 10);
    }
  }
  EXPECT_EQ(harness.out.str(),
            "[59/600] 1 failed  1:00, about 9:10 left  numerics.linear/int8_row/a\n"
            "[119/600] 1 failed  2:00, about 8:05 left  numerics.linear/int8_row/a\n");
}

TEST(Progress, RewritesOneLineOfATerminalAndLeavesNothing) {
  Harness harness;
  harness.screen = {.columns = 80, .terminal = true};
  {
    Progress progress(harness.options());
    progress.say("expanding plan quick");
    EXPECT_EQ(harness.out.str(), "\r\033[Kexpanding plan quick ...");
    progress.start(10);
    for (int i = 0; i < 10; ++i) {
      harness.now += std::chrono::milliseconds(300);
      progress.saw(true);
    }
  }
  EXPECT_THAT(harness.out.str(), HasSubstr("\r\033[K[10/10] 10 failed"));
  EXPECT_EQ(harness.out.str().find('\n'), std::string::npos);
  EXPECT_TRUE(harness.out.str().ends_with("\r\033[K"));
}

TEST(Progress, IsSilentWhenItIsSwitchedOff) {
  Harness harness;
  harness.screen = {.columns = 80, .terminal = true};
  Progress::Options options = harness.options();
  options.enabled = false;
  Progress progress(options);
  progress.say("expanding");
  progress.start(1);
  harness.now += std::chrono::minutes(5);
  progress.saw(true);
  EXPECT_EQ(harness.out.str(), "");
}

}  // namespace
}  // namespace qcts
