// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/printable.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace qcts {
namespace {

TEST(Printable, LeavesWordsOfAnyScriptAlone) {
  for (const char* text : {"", "layers.0.weight", "gewicht_ä", "重み.weight", "𝛼", "back\\slash"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatSteersATerminalOrHidesText) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("a\nb\rc\td\x7f"), "a\\nb\\rc\\td\\x7f");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31m"),
            "a\\u009b31m");
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a\\u202eb");
  EXPECT_EQ(printable("\xff\x9b"), "\\xff\\x9b");
  EXPECT_EQ(printable("cut\xe2\x80"), "cut\\xe2\\x80");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, JsonStaysTheSameJson) {
  const nlohmann::json json = {{"name", "a\x1b\x7f\xc2\x9b\xe2\x80\xae\xf3\xa0\x80\x81z"}, {"n", 1}};
  const std::string out = printable_json(json.dump(2));
  EXPECT_EQ(nlohmann::json::parse(out), json);
  for (char c : out) EXPECT_TRUE((c >= 0x20 && c < 0x7f) || c == '\n') << int(c);
}

}  // namespace
}  // namespace qcts
