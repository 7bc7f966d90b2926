// SPDX-License-Identifier: BSD-3-Clause
// Tests the catalogue of cheats: its ids are closed, each cheat has a twin and a pattern, verdicts of real
// runs say what was done, and without its fault a cheat is not named.
#include <fstream>
#include <iterator>
#include <ranges>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/selftest/cheats/judge_cheats.h"

namespace qcts::cheats {
namespace {

using testing::Contains;
using testing::HasSubstr;

const Cheat& cheat_named(std::string_view id) { return *std::ranges::find(catalogue(), id, &Cheat::id); }

TEST(Cheats, FindingsHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i < kFindingCount; ++i) {
    const auto finding = static_cast<FindingId>(i);
    EXPECT_TRUE(names.insert(finding_name(finding)).second) << finding_name(finding);
    EXPECT_EQ(finding_from_name(finding_name(finding)), finding);
  }
  EXPECT_EQ(finding_from_name("fail"), std::nullopt);
}

// A cheat that only fails, or that has no finding, would prove nothing.
TEST(Cheats, EachHasATwinAPatternAndAFinding) {
  std::set<std::string_view> ids;
  for (const Cheat& cheat : catalogue()) {
    EXPECT_TRUE(ids.insert(cheat.id).second) << cheat.id;
    EXPECT_FALSE(cheat.twin.empty() || cheat.what.empty()) << cheat.id;
    EXPECT_NE(cheat.finding, FindingId::nothing) << cheat.id;
    EXPECT_NE(cheat.finding, FindingId::other) << cheat.id;
    EXPECT_FALSE(cheat.pattern.empty()) << cheat.id;
    for (const auto word : cheat.pattern | std::views::split(' '))
      EXPECT_TRUE(is_known_pattern({word.begin(), word.end()})) << cheat.id;
  }
  EXPECT_FALSE(is_known_pattern("18") || is_known_pattern("0") || is_known_pattern("gc"));
}

TEST(Cheats, EachFindingNamesOne) {
  std::set<FindingId> expected;
  for (const Cheat& cheat : catalogue()) expected.insert(cheat.finding);
  for (int i = 1; i + 1 < kFindingCount; ++i)
    EXPECT_THAT(expected, Contains(static_cast<FindingId>(i))) << finding_name(static_cast<FindingId>(i));
}

// A pattern without a cheat needs a reason in the README.
TEST(Cheats, EachPatternHasACheatOrAReason) {
  std::ifstream file(repository_root() / "suites/selftest/cheats/README.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (int number = 1; number <= 17; ++number)
    EXPECT_THAT(text, HasSubstr("\n| " + std::to_string(number) + " |"));
  for (const Cheat& cheat : catalogue()) EXPECT_THAT(text, HasSubstr("`" + std::string(cheat.id) + "`"));
}

TEST(Cheats, AttemptsAreReadFromTheLog) {
  const auto attempts = attempts_in(
      "attempt: open a: refused: No such file or directory\nnoise\nattempt: patch: done\nattempt: patch: "
      "done\nattempt: cut");
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_EQ(attempts[0].what, "open a");
  EXPECT_FALSE(attempts[0].was_done);
  EXPECT_EQ(attempts[0].how, "refused: No such file or directory");
  EXPECT_TRUE(attempts[1].was_done);
}

TEST(Cheats, OneEffectiveAttemptIsEnough) {
  Verdict verdict;
  verdict.status = Status::fail;
  verdict.findings.push_back({Caveat::wrote_nothing, ""});
  const Attempt refused{"a", false, "refused: EPERM"}, done{"b", true, "done"};
  EXPECT_EQ(finding_of(verdict), FindingId::computes_nothing);
  EXPECT_EQ(finding_of(verdict, std::vector{refused}), FindingId::reach_refused);
  EXPECT_EQ(finding_of(verdict, std::vector{refused, done}), FindingId::tampers_in_vain);
}

TEST(Cheats, AFailWithoutAnyOfThisIsOther) {
  Verdict verdict;
  verdict.status = Status::fail;
  verdict.reason = "y: row 0, column 0: want 1, got 2";
  EXPECT_EQ(finding_of(verdict), FindingId::other);
  verdict.status = Status::pass;
  EXPECT_EQ(finding_of(verdict), FindingId::nothing);
}

// The clock is the judge's own only if the time that a call takes shows in it.
TEST(Cheats, AStoppedClockIsToldFromAKeptOne) {
  Verdict verdict;
  verdict.status = Status::pass;
  verdict.measures.push_back({"median_us", "us", 5100, {}, {}, {}});
  const std::vector<Attempt> stopped = {{"stop the clock", true, "done"}};
  EXPECT_EQ(finding_of(verdict, stopped, 5000), FindingId::honest_clock_kept);
  verdict.measures[0].value = 12;
  EXPECT_EQ(finding_of(verdict, stopped, 5000), FindingId::nothing);
}

// Cheats for each way in which a verdict can name one: by what the judge recognized, a reason or an attempt.
class CheatOf : public testing::TestWithParam<const char*> {};

TEST_P(CheatOf, IsNamedOnlyWithItsFault) {
  const Cheat& cheat = cheat_named(GetParam());
  const Judged with = judged(cheat.id, cheat.cases), without = judged(cheat.id, cheat.cases, Fault::off);
  ASSERT_EQ(with.problem, "");
  EXPECT_EQ(finding_name(finding_of(with.verdicts, with.attempts)), finding_name(cheat.finding))
      << with.verdicts.front().reason;
  ASSERT_EQ(without.verdicts.size(), 1u);
  EXPECT_EQ(without.verdicts.front().status, Status::pass) << without.verdicts.front().reason;
  EXPECT_EQ(finding_of(without.verdicts, without.attempts), FindingId::nothing);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CheatOf,
                         testing::Values("computes_nothing", "copies_input", "skips_tail", "skips_terms",
                                         "sniffs_poison", "leaves_stale", "remembers_by_first_bytes",
                                         "remembers_weight_by_pointer", "sums_in_bfloat16",
                                         "declares_everything", "refuses_by_values", "finishes_in_child",
                                         "keeps_child", "leaves_child", "writes_and_restores_input",
                                         "answers_ahead", "patches_write", "writes_foreign_memory"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Cheats, ATwinThatFailsIsTold) {
  CheatRow row;
  row.cheat = &cheat_named("computes_nothing");
  row.of_twin = judged("skips_tail", row.cheat->cases);
  EXPECT_FALSE(row.twin_passed());
  EXPECT_THAT(text_of(row), HasSubstr("twin FAILED"));
  row.of_twin.verdicts.clear();
  EXPECT_FALSE(row.twin_passed());
}

}  // namespace
}  // namespace qcts::cheats
