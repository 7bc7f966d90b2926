// SPDX-License-Identifier: BSD-3-Clause
// Tests the exit code: what makes a run conformant, and everything that must not.
#include "reports/report.h"

#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace qcts {
namespace {

Verdict verdict(const std::string& id, Status status, const std::string& provider = "builtin") {
  Verdict v;
  v.case_id = parse_case_id(id).value();
  v.provider = provider;
  v.variant = provider == "qcts" ? "" : "scalar";
  v.status = status;
  v.reason = status == Status::pass ? "" : "a reason";
  v.rerun = "qcts run --filter " + id;
  return v;
}

const std::string kCase = "numerics.linear/int8_row/noise";
const std::string kFile = "size.file/int8_row/toy";
const std::string kTimed = "latency.linear/int8_row/m1";

RunReport report_of(std::vector<Verdict> verdicts) {
  RunReport report;
  report.mustpass = {kCase, kFile};
  report.verdicts = std::move(verdicts);
  report.started_utc = "2026-01-01T00:00:00Z";
  return report;
}

TEST(Conformance, EverythingPassed) {
  const Conformance result =
      conformance(report_of({verdict(kCase, Status::pass), verdict(kFile, Status::pass, "qcts")}));
  EXPECT_EQ(result.outcome, Outcome::conformant);
  EXPECT_TRUE(result.conformant);
}

struct StatusOutcome {
  Status status;
  Outcome outcome;
};
class OneStatus : public testing::TestWithParam<StatusOutcome> {};

TEST_P(OneStatus, DecidesTheRun) {
  const Conformance result =
      conformance(report_of({verdict(kCase, GetParam().status), verdict(kFile, Status::pass, "qcts")}));
  EXPECT_EQ(result.outcome, GetParam().outcome) << result.reason;
  EXPECT_EQ(result.conformant, GetParam().outcome == Outcome::conformant);
}

INSTANTIATE_TEST_SUITE_P(Conformance, OneStatus,
                         testing::Values(StatusOutcome{Status::fail, Outcome::failed},
                                         StatusOutcome{Status::weak_evidence, Outcome::failed},
                                         StatusOutcome{Status::not_supported, Outcome::conformant},
                                         StatusOutcome{Status::waived, Outcome::conformant},
                                         StatusOutcome{Status::robustness, Outcome::conformant},
                                         StatusOutcome{Status::xpass, Outcome::failed},
                                         StatusOutcome{Status::crash, Outcome::failed},
                                         StatusOutcome{Status::timeout, Outcome::failed},
                                         StatusOutcome{Status::resource, Outcome::failed},
                                         StatusOutcome{Status::inconclusive, Outcome::inconclusive},
                                         StatusOutcome{Status::internal, Outcome::infrastructure}),
                         [](const auto& info) { return std::string(status_name(info.param.status)); });

TEST(Conformance, TheSuiteItselfMayNotDecline) {
  EXPECT_EQ(
      conformance(report_of({verdict(kCase, Status::pass), verdict(kFile, Status::not_supported, "qcts")}))
          .outcome,
      Outcome::failed);
}

TEST(Conformance, NothingSelectedAndNothingSupportedProveNothing) {
  EXPECT_EQ(conformance(report_of({})).outcome, Outcome::nothing_proved);
  RunReport report = report_of({verdict(kCase, Status::not_supported)});
  report.selection = {"--filter x"};
  EXPECT_EQ(conformance(report).outcome, Outcome::nothing_proved);
}

TEST(Conformance, AMissingCaseFailsAWholeRunAndIsNamedInAPartialOne) {
  RunReport report = report_of({verdict(kFile, Status::pass, "qcts")});
  Conformance whole = conformance(report);
  EXPECT_EQ(whole.outcome, Outcome::failed);
  EXPECT_THAT(whole.reason, testing::HasSubstr(kCase));
  report.selection = {"--kind size"};
  const Conformance part = conformance(report);
  EXPECT_EQ(part.outcome, Outcome::conformant);
  EXPECT_FALSE(part.conformant) << "one part of the list cannot be conformant";
  EXPECT_EQ(part.missing, std::vector<std::string>{kCase});
}

// Whoever could have changed the verdicts gets no statement; a whole run then could not judge.
TEST(Conformance, IsNotStatedOfAProviderThatWasNotIsolated) {
  RunReport report = report_of({verdict(kCase, Status::pass), verdict(kFile, Status::pass, "qcts")});
  report.providers = {{{"name", "acme"}, {"isolation", "isolated, but it can read files"}}};
  EXPECT_TRUE(conformance(report).conformant);
  report.providers.push_back({{"name", "other"}, {"isolation", "not isolated: it can trace the judge"}});
  const Conformance whole = conformance(report);
  EXPECT_EQ(whole.outcome, Outcome::infrastructure);
  EXPECT_FALSE(whole.conformant);
  EXPECT_EQ(whole.not_isolated, "other: it can trace the judge");
  report.providers.back()["isolation"] = "not isolated, as was asked: it can trace the judge";
  EXPECT_EQ(conformance(report).outcome, Outcome::conformant) << "--isolation best: its verdicts can be read";
  EXPECT_FALSE(conformance(report).conformant);
  report.providers.back()["isolation"] = "not isolated: it can trace the judge";
  report.selection = {"--filter x"};
  const Conformance narrowed = conformance(report);
  EXPECT_EQ(narrowed.outcome, Outcome::conformant) << "its verdicts can be read";
  EXPECT_FALSE(narrowed.conformant);
}

TEST(Conformance, CasesBeyondTheListAreNamed) {
  const Conformance result = conformance(
      report_of({verdict(kCase, Status::pass), verdict(kFile, Status::pass, "qcts"),
                 verdict("numerics.linear/int8_row/other", Status::pass), verdict(kTimed, Status::pass)}));
  EXPECT_EQ(result.extra, std::vector<std::string>{"numerics.linear/int8_row/other"});
}

TEST(Conformance, LatencyGatesOnlyWhenAsked) {
  RunReport report = report_of({verdict(kCase, Status::pass), verdict(kFile, Status::pass, "qcts"),
                                verdict(kTimed, Status::inconclusive)});
  EXPECT_EQ(conformance(report).outcome, Outcome::conformant);
  report.gate_latency = true;
  EXPECT_EQ(conformance(report).outcome, Outcome::inconclusive);
  report.verdicts.back().status = Status::crash;
  report.gate_latency = false;
  EXPECT_EQ(conformance(report).outcome, Outcome::failed) << "a crash is never a measurement";
}

TEST(Conformance, TheFloorHoldsAWholeRun) {
  RunReport report = report_of({verdict(kCase, Status::not_supported), verdict(kFile, Status::pass, "qcts")});
  report.floor = {{"int8_row", Op::linear, 1, 0}};
  count_floor(report);
  EXPECT_EQ(report.floor[0].passes, 0u);
  EXPECT_EQ(conformance(report).outcome, Outcome::failed);
  // Two implementations of one case count as one pass.
  report.verdicts = {verdict(kCase, Status::pass), verdict(kCase, Status::pass, "aten"),
                     verdict(kFile, Status::pass, "qcts")};
  count_floor(report);
  EXPECT_EQ(report.floor[0].passes, 1u);
  EXPECT_EQ(conformance(report).outcome, Outcome::conformant);
}

TEST(Conformance, AProviderThatCouldNotBeLoadedIsNotForgotten) {
  RunReport report = report_of({verdict(kCase, Status::pass), verdict(kFile, Status::pass, "qcts")});
  report.infrastructure = {"provider aten: no such file"};
  EXPECT_EQ(conformance(report).outcome, Outcome::infrastructure);
}

TEST(Report, EmulatedEvidenceIsNeverConfirmed) {
  RunReport report = report_of({verdict(kCase, Status::pass), verdict(kFile, Status::pass, "qcts")});
  report.verdicts[0].evidence = {"golden", "emulated"};
  report.verdicts[1].evidence = {"golden"};
  const auto evidence = report_json(report)["counts"]["passes_by_evidence"];
  EXPECT_EQ(evidence["confirmed"], 1);
  EXPECT_EQ(evidence["emulated"], 1);
}

TEST(Report, AssignTellsEachTypeBeforeAndAfterLoading) {
  RunReport report = report_of({verdict("assign.file/int8_row/toy", Status::pass, "qcts")});
  report.verdicts[0].loaded = {{"Tensor float32", "Int8Tensor int8_row float32", 2}};
  report.verdicts[0].measures = {{"peak_bytes", "bytes", 4096, {}, {}, {}}};
  const auto row = report_json(report)["assign"].at(0);
  EXPECT_EQ(row["case_id"], "assign.file/int8_row/toy");
  EXPECT_EQ(row["measures"]["peak_bytes"]["value"], 4096);
  const nlohmann::ordered_json loaded = {
      {"before", "Tensor float32"}, {"after", "Int8Tensor int8_row float32"}, {"tensors", 2}};
  EXPECT_EQ(row["loaded"].at(0), loaded);
}

TEST(Junit, ACellIsATestcaseAndListsItsFailures) {
  RunReport report =
      report_of({verdict(kCase, Status::fail), verdict("numerics.linear/int8_row/tail", Status::pass),
                 verdict("numerics.linear/int8_row/x", Status::not_supported),
                 verdict("reject.file/any/z", Status::crash, "qcts"),
                 verdict("numerics.pack/int8_row/x", Status::not_supported),
                 verdict("numerics.unpack/int8_row/x", Status::pass),
                 verdict("numerics.unpack/int8_row/y", Status::not_supported)});
  report.verdicts[0].reason = "a < b & \"c\"\x01\n\xEF\xBF\xBF";
  report.environment = {{"hostname", "h<1>"}, {"cpu_model", "a & b"}};
  report.providers = {{{"name", "builtin"}, {"version", "1"}}};
  const std::string xml = junit_xml(report);
  EXPECT_THAT(xml,
              testing::HasSubstr("<testsuites name=\"qcts\" tests=\"4\" failures=\"1\" errors=\"1\" time="));
  EXPECT_THAT(xml, testing::HasSubstr("message=\"1 of 3 fail: a &lt; b &amp; &quot;c&quot;?&#10;?\""));
  EXPECT_THAT(xml, testing::HasSubstr("  " + kCase + "/builtin_scalar&#10;"));
  EXPECT_THAT(xml, testing::HasSubstr("rerun: qcts run --filter " + kCase));
  EXPECT_THAT(xml, testing::HasSubstr("<skipped message=\"1 of 1 not_supported: a reason\"/>"));
  EXPECT_THAT(xml, testing::HasSubstr(
                       "classname=\"numerics.unpack.int8_row\" name=\"builtin_scalar\" time=\"0.000000\"/>"))
      << "a cell in which something passed is not skipped";
  EXPECT_THAT(xml, testing::HasSubstr("timestamp=\"2026-01-01T00:00:00\" hostname=\"h&lt;1&gt;\""));
  EXPECT_THAT(xml, testing::HasSubstr("<property name=\"cpu\" value=\"a &amp; b\"/>"));
  EXPECT_THAT(xml, testing::HasSubstr("<property name=\"provider\" value=\"builtin 1\"/>"));
}

TEST(Junit, ListsEveryCaseOnlyIfAsked) {
  const RunReport report =
      report_of({verdict(kCase, Status::fail), verdict("numerics.linear/int8_row/x", Status::pass)});
  const std::string xml = junit_xml(report, JunitForm::cases);
  EXPECT_THAT(xml, testing::HasSubstr("tests=\"2\" failures=\"1\""));
  EXPECT_THAT(xml, testing::HasSubstr("name=\"numerics.linear/int8_row/x/builtin_scalar\""));
}

// A provider that does not load has no cases; without this testcase a CI server would show a green run.
TEST(Junit, WhatCouldNotBeJudgedIsAnError) {
  RunReport report = report_of({verdict(kCase, Status::pass)});
  report.infrastructure = {"provider <acme>: cannot be loaded"};
  const std::string xml = junit_xml(report);
  EXPECT_THAT(xml, testing::HasSubstr("tests=\"2\" failures=\"0\" errors=\"1\""));
  EXPECT_THAT(xml, testing::HasSubstr(
                       "<error type=\"infrastructure\" message=\"provider &lt;acme&gt;: cannot be loaded\""));
}

struct Glob {
  const char *pattern, *text;
  bool matches;
};
class GlobMatch : public testing::TestWithParam<Glob> {};
TEST_P(GlobMatch, IsAnchored) {
  EXPECT_EQ(glob_match(GetParam().pattern, GetParam().text), GetParam().matches);
}
INSTANTIATE_TEST_SUITE_P(Waivers, GlobMatch,
                         testing::Values(Glob{"a*c", "abbc", true}, Glob{"a*c", "abcd", false},
                                         Glob{"a?c", "abc", true}, Glob{"a?c", "ac", false},
                                         Glob{"*", "", true}, Glob{"", "a", false},
                                         Glob{"*m1_n4096", "x/m1_n4096", true},
                                         Glob{"*m1_n4096", "x/m1_n40961", false}, Glob{"**b*", "aab", true}));

Waiver waiver(const std::string& expires, const std::string& today) {
  Waiver w{"numerics.*", "builtin", "https://example.org/1", "2026-01-01", expires, {}, false, 0, 0};
  w.days_left = days_between(today, expires);
  w.expired = w.days_left < 0;
  return w;
}

TEST(Waivers, ExcuseUntilTheirLastDayAndNoLonger) {
  std::vector<Waiver> waivers = {waiver("2026-03-01", "2026-03-01")};
  Verdict failed = verdict(kCase, Status::fail);
  apply_waivers(waivers, failed);
  EXPECT_EQ(failed.status, Status::waived);
  EXPECT_THAT(failed.reason,
              testing::AllOf(testing::HasSubstr("fail: a reason"), testing::HasSubstr("example.org")));
  waivers = {waiver("2026-03-01", "2026-03-02")};
  failed = verdict(kCase, Status::fail);
  apply_waivers(waivers, failed);
  EXPECT_EQ(failed.status, Status::fail);
  EXPECT_THAT(failed.reason, testing::HasSubstr("expired"));
}

TEST(Waivers, APassInSpiteOfOneIsXpassAndOtherProvidersAreUntouched) {
  std::vector<Waiver> waivers = {waiver("2026-03-01", "2026-01-01")};
  Verdict passed = verdict(kCase, Status::pass), other = verdict(kCase, Status::fail, "aten");
  apply_waivers(waivers, passed);
  apply_waivers(waivers, other);
  EXPECT_EQ(passed.status, Status::xpass);
  EXPECT_EQ(other.status, Status::fail);
}

TEST(Waivers, DaysAreCountedByTheCalendar) {
  EXPECT_EQ(days_between("2028-02-28", "2028-03-01"), 2);
  EXPECT_THROW(days_between("2026-02-29", "2026-03-01"), std::runtime_error);
  EXPECT_THROW(days_between("2026-3-1", "2026-03-01"), std::runtime_error);
}

class BrokenWaivers : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BrokenWaivers, AreRefusedWithTheEntry) {
  const auto& [text, named] = GetParam();
  const std::string path = testing::TempDir() + "/qcts_waivers_" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << text;
  try {
    load_waivers(path, "2026-01-01");
    FAIL() << text;
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr(path), testing::HasSubstr(named)));
  }
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    Waivers, BrokenWaivers,
    testing::Values(
        std::pair{"{", "not JSON"}, std::pair{R"({"schema": 2, "waivers": []})", "schema"},
        std::pair{
            R"({"schema": 1, "waivers": [{"case": "*", "provider": "aten", "issue": "u", "added": "2026-01-01"}]})",
            "waiver 0: field 'expires'"},
        std::pair{
            R"({"schema": 1, "waivers": [{"case": "*", "provider": "aten", "issue": "", "added": "2026-01-01",
                  "expires": "2026-02-01"}]})",
            "field 'issue'"},
        std::pair{
            R"({"schema": 1, "waivers": [{"case": "*", "provider": "aten", "issue": "u", "added": "2026-01-01",
                  "expires": "never"}]})",
            "'never'"},
        std::pair{
            R"({"schema": 1, "waivers": [{"case": "*", "provider": "aten", "issue": "u", "added": "2026-01-01",
                  "expires": "2026-02-01", "note": "x"}]})",
            "unknown field"}));

}  // namespace
}  // namespace qcts
