// SPDX-License-Identifier: BSD-3-Clause
// Tests what a log gives to the reason of a dead process.
#include <fstream>

#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/base/process.h"

namespace qcts {
namespace {

std::string last_words_of(const std::string& log) {
  const ScratchFolder scratch;
  const std::filesystem::path file = scratch.path() / "x.log";
  std::ofstream(file) << log;
  return with_last_words("it died", file);
}

TEST(LastWords, AreTenLines) {
  std::string log;
  for (int i = 1; i <= 12; ++i) log += "  line " + std::to_string(i) + "  \n\n";
  const std::string words = last_words_of(log);
  EXPECT_EQ(words.rfind("it died; it last wrote: line 3 | line 4 | ", 0), 0u) << words;
  EXPECT_TRUE(words.ends_with(" | line 11 | line 12")) << words;
}

TEST(LastWords, ATracebackStandsAlone) {
  EXPECT_EQ(
      last_words_of("chatter\nTraceback (most recent call last):\n  File \"a.py\", line 3\nNameError: x\n"),
      "it died; it last wrote: Traceback (most recent call last): | File \"a.py\", line 3 | NameError: x");
}

TEST(LastWords, HowTheProviderEndedComesFirst) {
  EXPECT_EQ(last_words_of("NameError: x\n" + std::string(kProviderEnded) + "exit code 1\n"),
            "it died; the provider's process ended: exit code 1; it last wrote: NameError: x");
}

TEST(LastWords, AnEmptyLogAddsNothing) {
  EXPECT_EQ(last_words_of(""), "it died");
  EXPECT_EQ(last_words_of(" \n\t\n"), "it died");
}

TEST(LastWords, ALongLineIsCut) {
  EXPECT_EQ(last_words_of(std::string(1000, 'x')).size(),
            std::string("it died; it last wrote: ").size() + 300);
}

}  // namespace
}  // namespace qcts
