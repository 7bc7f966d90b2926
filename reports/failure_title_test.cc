// SPDX-License-Identifier: BSD-3-Clause
// Tests the titles that people read in place of the keys of groups.
#include "reports/failure_title.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/report.h"

namespace qcts {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Fault {
  std::string reason;
  uint64_t wrong = 0, total = 0;  // total 0: no element is named
  std::optional<Caveat> caveat = {};
};

Verdict failed(const Fault& fault, int number = 0) {
  Verdict v;
  v.case_id = parse_case_id("numerics.linear/s/noise_m" + std::to_string(number + 1)).value();
  v.provider = "acme";
  v.status = Status::fail;
  v.reason = fault.reason;
  v.rerun = "qcts run";
  if (fault.total > 0) v.mismatch = Mismatch{"y: row 3, column 40", "1", "2", fault.wrong, fault.total};
  if (fault.caveat) v.findings.push_back({*fault.caveat, ""});
  return v;
}

struct Titled {
  std::vector<Fault> faults;
  const char* title;
};
class FailureTitle : public testing::TestWithParam<Titled> {};

TEST_P(FailureTitle, IsMadeOfFields) {
  std::vector<Verdict> verdicts;
  for (const Fault& fault : GetParam().faults)
    verdicts.push_back(failed(fault, static_cast<int>(verdicts.size())));
  const std::vector<Group> groups = groups_of(verdicts, false);
  ASSERT_EQ(groups.size(), 1u) << groups.back().name();
  EXPECT_EQ(failure_title(groups[0]), GetParam().title);
}

const char* const kFirst = "y: row 3, column 40: want 1, got 2; ";

INSTANTIATE_TEST_SUITE_P(
    Groups, FailureTitle,
    testing::Values(
        Titled{
            {{std::string(kFirst) + "hypothesis: bias missing (predicts 7 of 7), all in the last row", 7, 9},
             {std::string(kFirst) + "hypothesis: bias missing (predicts 9 of 9), all in the last row", 9, 9}},
            "bias missing, all in the last row"},
        Titled{{{"hypothesis: bias missing (predicts 7 of 7), all in the last row", 7, 9},
                {"hypothesis: bias missing (predicts 9 of 9)", 9, 9}},
               "bias missing"},
        Titled{{{kFirst, 2, 100}, {kFirst, 78, 100}}, "wrong y, 2 % to 78 % of the elements"},
        Titled{{{kFirst, 9, 9}, {kFirst, 4, 4}}, "wrong y, every element"},
        Titled{{{kFirst, 1, 9}, {kFirst, 1, 4}}, "wrong y, one element"},
        Titled{{{std::string(kFirst) + "7 of 91 weights differ; all in the last column; x", 7, 91}},
               "wrong y, 8 % of the elements, all in the last column"},
        Titled{{{std::string(kFirst) + "y was not written", 9, 9, Caveat::wrote_nothing}},
               "wrong y, every element: the output was not written"},
        Titled{{{"claims to be batch-invariant, but row 3 alone: y: row 3, column 0: 1 became 2", 7, 9},
                {"claims to be batch-invariant, but row 5 alone: y: row 5, column 0: 1 became 2", 7, 9}},
               "not batch-invariant, as it claims"},
        Titled{{{"wrong after a call with other data: y: row 0, column 0: want 1, got 2", 7, 9}},
               "wrong after a call with other data"},
        Titled{{{"wrong without another call: y: row 0, column 0: want 1, got 2", 9, 9}},
               "wrong y, every element"},
        Titled{{{"not timed: wrong answer: 3 of 64 sampled outputs are wrong: want 1, got 2"},
                {"not timed: wrong answer: 4 of 64 sampled outputs are wrong: want 1, got 2"}},
               "not timed: wrong answer"},
        Titled{{{"k 13 is no multiple of 32"}}, "k 13 is no multiple of 32"},
        Titled{{{"k 13 is no multiple of 32"}, {"k 17 is no multiple of 32"}}, "k ... is no multiple of ..."},
        Titled{{{"kernel #3 is shy # today"}}, "kernel No. 3 is shy  today"}));

TEST(FailureTitles, DifferForClaimsAndValues) {
  const std::vector<Verdict> verdicts = {
      failed({"claims to be deterministic, but repeat 3: y: row 3, column 0: 1 became 2", 7, 9}),
      failed({kFirst, 7, 9}, 1)};
  EXPECT_EQ(groups_of(verdicts, false).size(), 2u);
}

TEST(FailureTitles, AFewValuesJoinAMistakeThatOthersName) {
  const std::string few =
      std::string(kFirst) + "too few values to name a mistake, they agree with: bias missing";
  EXPECT_EQ(groups_of(std::vector<Verdict>{failed({few, 7, 7})}, false)[0].hypothesis, "");
  const std::vector<Verdict> verdicts = {
      failed({few, 7, 7}),
      failed({std::string(kFirst) + "hypothesis: bias missing (predicts 37 of 37)", 37, 37}, 1)};
  const std::vector<Group> groups = groups_of(verdicts, false);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(failure_title(groups[0]), "bias missing");
  EXPECT_EQ(groups[0].verdicts.front(), &verdicts[1]) << "the example names it";
  Verdict of_another = verdicts[0];
  of_another.provider = "other";
  EXPECT_EQ(groups_of(std::vector<Verdict>{of_another, verdicts[1]}, false).size(), 2u);
}

TEST(FailureTitles, OfADeathHaveTheLastLineAndNoLog) {
  const std::vector<Verdict> verdicts = {
      failed({"its worker died: SIGSEGV; it last wrote: a | b(+0x1f) | run(+0x1f); its log: out/acme_1.log"}),
      failed({"its worker died: SIGSEGV; it last wrote: c | run(+0x1f); its log: out/acme_2.log"}, 1)};
  const std::vector<Group> groups = groups_of(verdicts, false);
  ASSERT_EQ(groups.size(), 1u) << groups.back().name();
  EXPECT_EQ(failure_title(groups[0]), "its worker died: SIGSEGV; it last wrote: run(+0x1f)");
}

TEST(FailureTitles, OfAReasonAlone) {
  EXPECT_EQ(failure_title(std::string(kFirst) + "3 of 9 elements"), "wrong y");
  EXPECT_EQ(failure_title("x; hypothesis: bias missing (predicts 7 of 7), all in the last row"),
            "bias missing, all in the last row");
  EXPECT_EQ(failure_title("its worker died: SIGSEGV"), "its worker died: SIGSEGV");
}

TEST(FailureTitles, AreTheSameEverywhereAndHoldNoNumberSign) {
  std::mt19937 random(7);
  const std::string alphabet = "ab #:;,0123456789.-";
  RunReport report;
  report.started_utc = "2026-01-01T00:00:00Z";
  for (int i = 0; i < 300; ++i) {
    std::string reason;
    for (unsigned n = random() % 60; n > 0; --n) reason += alphabet[random() % alphabet.size()];
    if (i % 3 == 0) reason = kFirst + reason;
    if (i % 5 == 0) reason += "hypothesis: a" + reason + " (predicts 3 of 3)";
    report.verdicts.push_back(failed({reason, 3, i % 3 == 0 ? 9u : 0u}, i));
  }
  const auto json = report_json(report);
  ASSERT_FALSE(json["groups"].empty());
  for (const auto& group : json["groups"])
    EXPECT_THAT(group["title"].get<std::string>(), Not(HasSubstr("#")));
  const std::string title = json["groups"][0]["title"];
  EXPECT_EQ(failure_title(groups_of(report.verdicts, false)[0]), title);
}

TEST(FailureTitles, StandInJUnit) {
  RunReport report;
  report.started_utc = "2026-01-01T00:00:00Z";
  report.verdicts = {failed({std::string(kFirst) + "all 9 weights are right, so look at the bias", 7, 9})};
  EXPECT_THAT(junit_xml(report), HasSubstr("message=\"1 of 1 fail: wrong y, 78 % of the elements\""));
}

}  // namespace
}  // namespace qcts
