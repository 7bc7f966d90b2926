// SPDX-License-Identifier: BSD-3-Clause
// Tests what `qcts compare` calls a change, for every pair of statuses, and which latency it names.
#include "suites/comparison/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/comparison/sample_runs.h"

namespace qcts {
namespace {

using testing::HasSubstr;

// Absent, then every status.
std::vector<std::optional<Status>> all_states() {
  std::vector<std::optional<Status>> states = {std::nullopt};
  for (int i = 0; i < kStatusCount; ++i) states.push_back(static_cast<Status>(i));
  return states;
}

RecordedRun run_with(const std::optional<Status>& status) {
  std::vector<CaseState> cases = {sample_case("numerics.linear/int8_row/a")};
  if (status) cases.push_back(sample_case("numerics.linear/int8_row/b", *status));
  return sample_run(std::move(cases));
}

// The list that a case belongs to; "" if it is in none.
std::string expected_list(const std::optional<Status>& before, const std::optional<Status>& after) {
  if (!after) return before ? "gone" : "";
  if (is_bad(*after)) return before && is_bad(*before) ? "" : "newly_failing";
  if (!before) return "new";
  if (*before == *after) return "";
  if (*after == Status::not_supported) return "newly_not_supported";
  if (*after == Status::inconclusive) return "newly_inconclusive";
  if (*after == Status::robustness) return "newly_robustness";
  return *before == Status::not_supported ? "newly_supported" : "fixed";
}

Outcome expected_outcome(const std::string& list) {
  if (list == "newly_failing" || list == "gone" || list == "newly_not_supported") return Outcome::failed;
  return list == "newly_inconclusive" ? Outcome::inconclusive : Outcome::conformant;
}

TEST(RunComparison, FilesEveryPairOfStatusesUnderOneChange) {
  for (const auto& before : all_states())
    for (const auto& after : all_states()) {
      const RunComparison comparison = compare(run_with(before), run_with(after));
      const std::string want = expected_list(before, after);
      SCOPED_TRACE((before ? std::string(status_name(*before)) : "absent") + " -> " +
                   (after ? std::string(status_name(*after)) : "absent"));
      EXPECT_EQ(outcome_of(comparison), expected_outcome(want));
      const nlohmann::ordered_json json = comparison_json(comparison);
      for (const char* list : {"newly_failing", "gone", "newly_not_supported", "newly_inconclusive",
                               "newly_robustness", "fixed", "newly_supported", "new"})
        EXPECT_EQ(json[list].size(), list == want ? 1u : 0u) << list;
      if (want.empty()) continue;
      EXPECT_EQ(json[want][0]["id"], "numerics.linear/int8_row/b");
      EXPECT_THAT(comparison_text(comparison, 0), HasSubstr("numerics.linear/int8_row/b"));
      EXPECT_THAT(comparison_markdown(comparison, 0), HasSubstr("`numerics.linear/int8_row/b`"));
    }
}

// Every bad status is a failure, and the others are not.
TEST(RunComparison, TheBadStatusesAreThoseThatBlockConformance) {
  for (int i = 0; i < kStatusCount; ++i) {
    const Status status = static_cast<Status>(i);
    Verdict verdict;
    verdict.case_id = *parse_case_id("numerics.linear/int8_row/a");
    verdict.provider = "builtin";
    verdict.status = status;
    EXPECT_EQ(is_bad(status) || status == Status::inconclusive, blocks_conformance(verdict, false))
        << status_name(status);
  }
}

TEST(RunComparison, EveryCaseIsCountedOnce) {
  std::vector<CaseState> before, after;
  for (int i = 0; i < 100; ++i) {
    const std::string id = "numerics.linear/int8_row/n" + std::to_string(1000 + i);
    if (i % 7 != 0) before.push_back(sample_case(id, i % 5 == 0 ? Status::fail : Status::pass));
    if (i % 11 != 0) after.push_back(sample_case(id, i % 3 == 0 ? Status::fail : Status::pass));
  }
  const RunComparison c = compare(sample_run(before), sample_run(after));
  EXPECT_EQ(c.newly_failing.size() + c.fixed.size() + c.added.size() + c.still_failing + c.unchanged,
            after.size());
  EXPECT_EQ(c.gone.size(), 8u);  // the multiples of 11 but 0 and 77, which are absent before too
}

TEST(RunComparison, NamesTheKernelThatIsSlowerAndNoOther) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    std::vector<CaseState> now = eight_timed_cases(2 * seed);
    CaseState& planted = now[seed % now.size()];
    planted = timed_case(planted.id, planted.pace->us.value * 1.10);
    const RunComparison worse = compare(sample_run(eight_timed_cases(2 * seed + 1)), sample_run(now));
    ASSERT_EQ(worse.latency.slower.size(), 1u) << seed;
    EXPECT_EQ(worse.latency.slower[0].id, planted.id);
    EXPECT_NEAR(worse.latency.slower[0].ratio.value, 1.10, 0.02);
    EXPECT_TRUE(worse.latency.faster.empty());
    EXPECT_EQ(outcome_of(worse), Outcome::failed);
    const RunComparison better = compare(sample_run(now), sample_run(eight_timed_cases(2 * seed + 1)));
    EXPECT_EQ(better.latency.faster.size(), 1u);
    EXPECT_EQ(outcome_of(better), Outcome::conformant);
  }
}

// Equal kernels on a noisy machine: the noise is seen in the runs themselves, so that few pairs name a case.
TEST(RunComparison, NoiseBetweenRunsIsNotASlowerKernel) {
  uint64_t named = 0;
  constexpr uint64_t kPairs = 200;
  double spread = 0;
  for (uint64_t seed = 0; seed < kPairs; ++seed) {
    const auto noisy = [&](uint64_t run) {
      std::vector<CaseState> cases;
      for (uint64_t i = 0; i < 8; ++i)
        cases.push_back(timed_case("latency.linear/int8_row/case" + std::to_string(i),
                                   100 * std::exp(0.03 * noise(100 + run, i))));
      return sample_run(std::move(cases));
    };
    const RunComparison c = compare(noisy(2 * seed), noisy(2 * seed + 1));
    named += !c.latency.slower.empty() || !c.latency.faster.empty();
    spread += c.latency.spread / kPairs;
  }
  EXPECT_LE(named, kPairs * 5 / 100);
  EXPECT_NEAR(spread, 0.03 * 1.15 * std::sqrt(2), 0.01);
}

TEST(RunComparison, ASlowerMachineMakesNoKernelSlower) {
  std::vector<CaseState> before = eight_timed_cases(1), after = eight_timed_cases(2);
  for (CaseState& state : after)
    for (double* us : {&state.pace->us.value, &state.pace->us.low, &state.pace->us.high}) *us *= 1.5;
  const RunComparison c = compare(sample_run(before), sample_run(after));
  EXPECT_TRUE(c.latency.slower.empty());
  EXPECT_EQ(outcome_of(c), Outcome::conformant);
}

// A kernel far from its roof: the roof's noise does not hide that it is slower, and makes no equal kernel
// slower.
TEST(RunComparison, ANoisyRoofDoesNotHideASlowerKernel) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto noisy_roofs = [&](uint64_t run, double planted) {
      std::vector<CaseState> cases = eight_timed_cases(run);
      cases[3] = timed_case(cases[3].id, planted * cases[3].pace->us.value);
      for (uint64_t i = 0; i < cases.size(); ++i) {
        Interval& roof = cases[i].pace->of_roof;
        roof.value *= std::exp(0.04 * noise(500 + run, i));
        roof.low = roof.value / 1.1;
        roof.high = roof.value * 1.1;
      }
      return sample_run(std::move(cases));
    };
    const RunComparison equal = compare(noisy_roofs(2 * seed, 1), noisy_roofs(2 * seed + 1, 1));
    EXPECT_TRUE(equal.latency.slower.empty());
    const RunComparison slower = compare(noisy_roofs(2 * seed, 1), noisy_roofs(2 * seed + 1, 1.25));
    ASSERT_EQ(slower.latency.slower.size(), 1u) << seed;
    EXPECT_THAT(slower.latency.slower[0].id, HasSubstr("case3"));
  }
}

Interval quartile_around(double us) { return {us, us / 1.005, us * 1.005, 200}; }

// A kernel whose fastest calls happen to be slower, and whose other calls are not, is not a slower kernel.
TEST(RunComparison, TheLowerQuartileMustAgree) {
  std::vector<CaseState> before = eight_timed_cases(1), now = eight_timed_cases(2);
  now[3] = timed_case(now[3].id, 115);
  for (size_t i = 0; i < now.size(); ++i) {
    before[i].pace->quartile_us = quartile_around(130);
    now[i].pace->quartile_us = quartile_around(130);
  }
  EXPECT_TRUE(compare(sample_run(before), sample_run(now)).latency.slower.empty());
  EXPECT_TRUE(compare(sample_run(now), sample_run(before)).latency.faster.empty());
  now[3].pace->quartile_us = quartile_around(140);
  const PaceComparison found = compare(sample_run(before), sample_run(now)).latency;
  ASSERT_EQ(found.slower.size(), 1u);
  EXPECT_EQ(found.slower[0].before_us, 130);  // the times that decided
  EXPECT_EQ(found.slower[0].after_us, 140);
  EXPECT_EQ(compare(sample_run(now), sample_run(before)).latency.faster.size(), 1u);
  now[3].pace->quartile_us = {};  // an older record, without its calls
  EXPECT_EQ(compare(sample_run(before), sample_run(now)).latency.slower.size(), 1u);
}

// The clock is raised by 2.6 % for some fastest calls, and the lower quartiles are quiet.
TEST(RunComparison, ARaisedClockDoesNotHideASlowerKernel) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const size_t planted = seed % 8;
    const auto clocked = [&](uint64_t run, double factor) {
      std::vector<CaseState> cases = eight_timed_cases(run);
      for (uint64_t i = 0; i < cases.size(); ++i) {
        const double own = i == planted ? factor : 1;
        const double clock = noise(700 + run, i) > 0 ? 1.026 : 1;
        cases[i] = timed_case(cases[i].id, own * clock * cases[i].pace->us.value);
        cases[i].pace->quartile_us = quartile_around(own * 105 * std::exp(0.003 * noise(900 + run, i)));
      }
      return sample_run(std::move(cases));
    };
    const RunComparison equal = compare(clocked(2 * seed, 1), clocked(2 * seed + 1, 1));
    EXPECT_TRUE(equal.latency.slower.empty() && equal.latency.faster.empty()) << seed;
    const RunComparison slower = compare(clocked(2 * seed, 1), clocked(2 * seed + 1, 1.10));
    ASSERT_EQ(slower.latency.slower.size(), 1u) << seed;
    EXPECT_THAT(slower.latency.slower[0].id, HasSubstr("case" + std::to_string(planted)));
  }
}

// The calls of a record give the quartile.
TEST(RunComparison, ReadsTheLowerQuartileOfTheCalls) {
  Verdict verdict;
  verdict.case_id = *parse_case_id("latency.linear/int8_row/a");
  verdict.measures = {{"fastest_us", "us", 1.0, {}, {}, 8}};
  verdict.samples_us = {8, 7, 6, 5, 4, 3, 2};
  const auto quartile = [&] { return case_state(verdict).pace->quartile_us; };
  EXPECT_EQ(quartile().value, 0);
  verdict.samples_us.push_back(1);
  EXPECT_EQ(quartile().value, 3);
  EXPECT_LT(quartile().low, 3);
  EXPECT_GT(quartile().high, 3);
  verdict.samples_us.push_back(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(quartile().value, 3);
}

TEST(RunComparison, AMeasurementThatIsNotTrustedDecidesNothing) {
  std::vector<CaseState> now = eight_timed_cases(2);
  now[3] = timed_case(now[3].id, 120, false);
  const RunComparison doubtful = compare(sample_run(eight_timed_cases(1)), sample_run(now));
  ASSERT_EQ(doubtful.latency.undecided.size(), 1u);
  EXPECT_THAT(doubtful.latency.undecided[0].doubt, HasSubstr("not to be trusted"));
  EXPECT_EQ(outcome_of(doubtful), Outcome::inconclusive);
  now[3] = timed_case(now[3].id, 120);
  RecordedRun suspended = sample_run(now);
  suspended.latency_trust.suspended = true;
  EXPECT_EQ(outcome_of(compare(sample_run(eight_timed_cases(1)), suspended)), Outcome::inconclusive);
}

TEST(RunComparison, OneCaseAloneIsJudgedByTheRoofsOfTheTwoRuns) {
  const auto one = [](double us) { return sample_run({timed_case("latency.linear/int8_row/a", us)}); };
  EXPECT_EQ(outcome_of(compare(one(100), one(115))), Outcome::failed);
  EXPECT_EQ(outcome_of(compare(one(100), one(100.5))), Outcome::conformant);
}

TEST(RunComparison, NightsOfTheHistorySayHowMuchACaseVaries) {
  const RecordedRun before = sample_run(eight_timed_cases(1));
  std::vector<CaseState> now = eight_timed_cases(2);
  now[0] = timed_case(now[0].id, 104);
  PaceHistory calm, wild;
  for (const CaseState& state : before.cases)
    for (uint64_t night = 0; night < 10; ++night) {
      calm[state.id].logs.push_back(std::log(100.0 / 80) + 0.003 * noise(1, night));
      wild[state.id].logs.push_back(std::log(100.0 / 80) + 0.03 * noise(1, night));
    }
  const RunComparison found = compare(before, sample_run(now), {}, calm);
  ASSERT_EQ(found.latency.slower.size(), 1u);
  EXPECT_EQ(found.latency.slower[0].nights, 10u);
  EXPECT_TRUE(compare(before, sample_run(now), {}, wild).latency.slower.empty());
}

struct OtherRun {
  const char* named;
  void (*change)(RecordedRun&);
  bool only_latency;
};
class NotComparable : public testing::TestWithParam<OtherRun> {};
TEST_P(NotComparable, RunsEndInThreeAndSayWhy) {
  const OtherRun& other = GetParam();
  const RecordedRun before = sample_run(eight_timed_cases(1));
  RecordedRun now = before;
  other.change(now);
  const RunComparison c = compare(before, now);
  EXPECT_THAT(c.not_comparable, HasSubstr(other.named));
  EXPECT_EQ(outcome_of(c), Outcome::nothing_proved);
  EXPECT_THAT(comparison_text(c, 0), HasSubstr("NOT COMPARABLE"));
  EXPECT_EQ(compare(before, now, {.latency = false}).not_comparable.empty(), other.only_latency);
}
INSTANTIATE_TEST_SUITE_P(
    Runs, NotComparable,
    testing::Values(
        OtherRun{"plan", [](RecordedRun& run) { run.head.plan = "quick"; }, false},
        OtherRun{"selection", [](RecordedRun& run) { run.head.selection = {"--kind size"}; }, false},
        OtherRun{"shard", [](RecordedRun& run) { run.head.shards = 2; }, false},
        OtherRun{"machine class", [](RecordedRun& run) { run.head.environment["cpu_family"] = 26; }, true},
        OtherRun{"machine class",
                 [](RecordedRun& run) { run.head.environment["features"].push_back("avx512f"); }, true},
        OtherRun{"threads", [](RecordedRun& run) { run.head.threads = 2; }, true}));

TEST(RunComparison, TwoVersionsOfAProviderAreComparedWhereverTheyLie) {
  RecordedRun before = sample_run({sample_case("numerics.linear/int8_row/a")}), now = before;
  before.head.selection = {"--plan /a/mine.json", "--provider ./old/acme.so"};
  now.head.selection = {"--plan /b/mine.json", "--provider ./new/acme.so"};
  now.head.providers[0]["sha256"] = "11";
  const RunComparison c = compare(before, now);
  EXPECT_EQ(c.not_comparable, "");
  ASSERT_EQ(c.environment.size(), 1u);
  EXPECT_EQ(c.environment[0].field, "provider builtin sha256");
  now.head.providers[0]["name"] = "other";
  EXPECT_THAT(compare(before, now).not_comparable, HasSubstr("providers other"));
}

TEST(RunComparison, NamesWhatChangedInTheEnvironment) {
  RecordedRun before = sample_run({sample_case("numerics.linear/int8_row/a")}), now = before;
  now.head.suite_commit = "def";
  now.head.seed = 7;
  now.head.environment["features"].push_back("avx512f");
  now.head.environment["compiler"] = "clang";
  now.head.providers.push_back({{"name", "aten"}, {"version", "2"}, {"sha256", "22"}});
  std::string fields;
  for (const FieldChange& change : compare(before, now).environment)
    fields += change.field + ": " + change.before + " -> " + change.after + "\n";
  EXPECT_EQ(
      fields,
      "suite_commit: abc -> def\nseed: 0 -> 7\ncompiler: none -> clang\nfeatures: nothing else -> avx512f\n"
      "provider aten: absent -> present\n");
}

TEST(RunComparison, AnotherSecretSeedDrawsAnew) {
  const RecordedRun before = sample_run({sample_case("numerics.linear/int8_row/drawn_00")});
  RecordedRun now = before;
  now.head.seed_sha256 = std::string(64, 'a');
  EXPECT_EQ(compare(before, before).drawn_anew, 0u);
  EXPECT_EQ(compare(before, now).drawn_anew, 1u);
}

TEST(RunComparison, NamesSizesThatChanged) {
  CaseState before = sample_case("size.file/int8_row/a"), now = before;
  before.bytes = {{"file_bytes", 10}, {"payload_bytes", 5}};
  now.bytes = {{"file_bytes", 12}, {"payload_bytes", 5}, {"padding_bytes", 1}};
  const RunComparison c = compare(sample_run({before}), sample_run({now}));
  ASSERT_EQ(c.sizes.size(), 1u);
  EXPECT_THAT(comparison_text(c, 0), HasSubstr("size.file/int8_row/a: file_bytes 10 -> 12"));
  EXPECT_EQ(outcome_of(c), Outcome::conformant)
      << "a size that breaks its formula is a failure of its own case";
}

// A provider's texts reach a terminal and a web page.
TEST(RunComparison, ReasonsCannotSteerTheirReader) {
  RecordedRun now = run_with(Status::fail);
  now.cases[1].reason = "a\x1b[2J|b\n`<script>`";
  const RunComparison c = compare(run_with(Status::pass), now);
  EXPECT_THAT(comparison_text(c, 0), HasSubstr("a\\x1b[2J|b\\n`<script>`"));
  EXPECT_THAT(comparison_markdown(c, 0), HasSubstr("`` a\\x1b[2J\\|b\\n`<script>` `` |"));
}

TEST(RunComparison, ALongReasonIsNotCutWithinACharacter) {
  for (size_t before = 0; before < 4; ++before) {
    RunComparison c = compare(run_with(Status::pass), run_with(Status::fail));
    c.newly_failing[0].reason = std::string(before, 'x');
    for (int i = 0; i < 200; ++i) c.newly_failing[0].reason += "\u00e9\u20ac";
    for (const std::string& text : {comparison_text(c, 0), comparison_markdown(c, 0)})
      EXPECT_EQ(nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', false)).get<std::string>(), text)
          << "dump() throws for text that is not UTF-8";
  }
}

TEST(RunComparison, LongListsAreCutInTextAndWholeInJson) {
  std::vector<CaseState> before, after;
  for (int i = 0; i < 50; ++i) {
    before.push_back(sample_case("numerics.linear/int8_row/n" + std::to_string(100 + i)));
    after.push_back(sample_case(before.back().id, Status::fail));
  }
  const RunComparison c = compare(sample_run(before), sample_run(after));
  EXPECT_THAT(comparison_text(c, 20), HasSubstr("50 pass -> fail: a reason"));
  EXPECT_THAT(comparison_text(c, 20), testing::Not(HasSubstr("n103")));
  EXPECT_THAT(comparison_text(c, 0), HasSubstr("n149"));
  EXPECT_EQ(comparison_json(c)["newly_failing"].size(), 50u);
}

}  // namespace
}  // namespace qcts
