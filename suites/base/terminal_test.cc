// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/terminal.h"

#include <cstdlib>
#include <optional>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qcts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

std::vector<std::string> printed_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Sets a variable of the environment for one test.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~EnvironmentVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Screen, ColumnsAreTakenFromTheEnvironment) {
  const std::vector<std::pair<const char*, size_t>> asked = {
      {"132", 132}, {"3", 40}, {"", 80}, {"12x", 80}, {"-5", 80}};
  for (const auto& [word, columns] : asked) {
    const EnvironmentVariable set("COLUMNS", word);
    EXPECT_EQ(screen_of(-1).columns, columns) << word;  // -1 is not a terminal
  }
  EXPECT_FALSE(screen_of(-1).colour);
}

TEST(Columns, WideCharactersTakeTwo) {
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("é"), 1u);
  EXPECT_EQ(columns_of("日本"), 4u);
  EXPECT_EQ(clipped_to("日本語", 5), "日...");
  EXPECT_EQ(clipped_to("abcdef", 5), "ab...");
  EXPECT_EQ(clipped_to("abcde", 5), "abcde");
}

TEST(Numbers, HaveCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1114112), "1,114,112");
  EXPECT_EQ(with_commas(-1234), "-1,234");
}

TEST(Printout, BreaksBetweenWordsAndHangsTheRest) {
  Printout out({.columns = 42});
  out.text("hypothesis: scale of the previous row (predicts 7709 of 7709)", 4);
  EXPECT_THAT(printed_lines(out.str()),
              ElementsAre("    hypothesis: scale of the previous row", "      (predicts 7709 of 7709)"));
}

TEST(Printout, ColoursALineOnlyWhereTheScreenHasColour) {
  Printout plain({.columns = 80}), coloured({.columns = 80, .terminal = true, .colour = true});
  plain.text("fail", 2, Ink::red);
  coloured.text("fail", 2, Ink::red);
  EXPECT_EQ(plain.str(), "  fail\n");
  EXPECT_EQ(coloured.str(), "  \033[31mfail\033[0m\n");
}

TEST(Printout, PutsALongFirstCellOnItsOwnLine) {
  Printout out({.columns = 40});
  const std::string name = "layers.0.attention.output.projection.w";
  ASSERT_TRUE(out.table({{"layer"}, {"SQNR", Align::right}}, {{"a", "1.5"}, {name, "12.25"}}));
  EXPECT_THAT(printed_lines(out.str()),
              ElementsAre(std::string("layer") + std::string(31, ' ') + "SQNR",
                          "a" + std::string(36, ' ') + "1.5", name, std::string(35, ' ') + "12.25"));
}

TEST(Printout, RefusesATableThatDoesNotFit) {
  Printout out({.columns = 40});
  EXPECT_FALSE(out.table({{"a"}, {"b"}}, {{"x", std::string(40, 'y')}}));
  EXPECT_EQ(out.str(), "");
}

std::string random_word(std::mt19937& random) {
  static const std::vector<std::string> pieces = {
      "a",  "scale", "/",      "_m17", "int4_tinygemm_g128", ".so", "日本", "é",  "-",
      "--", "=",     "0x3c21", ",",    "\x1b[31m",           "xx",  "\n",   "\t", "🙂"};
  std::string word;
  for (unsigned n = random() % 9 + 1; n > 0; --n) word += pieces[random() % pieces.size()];
  return word;
}

std::string random_words(std::mt19937& random) {
  std::string text;
  for (unsigned n = random() % 30; n > 0; --n) text += random_word(random) + std::string(random() % 3, ' ');
  return text;
}

TEST(Printout, NoLineIsWiderThanTheScreen) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Screen screen{.columns = 40 + random() % 100};
    Printout out(screen);
    out.text(random_words(random), random() % 8);
    out.command(random_words(random), random() % 8);
    std::vector<TableRow> rows;
    for (int row = 0; row < 3; ++row) rows.push_back({random_word(random), random_word(random), "12"});
    out.table({{"name"}, {"number", Align::right}, {"rest"}}, rows, random() % 8);
    for (const std::string& line : printed_lines(out.str()))
      ASSERT_THAT(columns_of(line), Le(screen.columns)) << line;
    ASSERT_THAT(out.str(), Not(HasSubstr("\033")));
  }
}

// Splits the text as a shell does.
std::string by_shell(const std::string& text) {
  FILE* pipe = ::popen(("printf '%s|' " + text).c_str(), "r");
  std::string said;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said += static_cast<char>(c);
  ::pclose(pipe);
  return said;
}

TEST(Printout, ACommandMeansTheSameAfterItIsBroken) {
  const std::string id =
      "determinism.quantize_activation/fp8_e5m2_tensor/noise_static_tensor_out_m5_n37_k216_bf16/"
      "builtin_avx512";
  const std::vector<std::string> commands = {
      "build/release/bin/qcts run --filter " + id + " --provider ./acme.so",
      "run --provider '/tmp/a folder with spaces and a name that is far too long for a line/acme.so' --seed "
      "7",
      "run --provider 'it'\\''s here' --filter " + id};
  for (const size_t columns : {40, 60, 80, 120})
    for (const std::string& command : commands) {
      Printout out({.columns = columns});
      out.command(command, 4);
      EXPECT_EQ(by_shell(out.str()), by_shell(command)) << out.str();
      for (const std::string& line : printed_lines(out.str()))
        EXPECT_THAT(columns_of(line), Le(columns)) << line;
    }
}

}  // namespace
}  // namespace qcts
