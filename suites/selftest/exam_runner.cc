// SPDX-License-Identifier: BSD-3-Clause
// Questions for selection, counting and waivers.
#include <set>

#include "suites/selftest/exam_parts.h"

namespace qcts::selftest {
namespace {

constexpr const char* kCase = "numerics.linear/int8_row/noise_m1_n1_k2_bf16";

Verdict verdict_of(Status status, const std::string& id = kCase, const std::string& provider = "builtin") {
  Verdict verdict;
  verdict.case_id = parse_case_id(id).value();
  verdict.provider = provider;
  verdict.variant = "scalar";
  verdict.status = status;
  verdict.reason = status == Status::pass ? "" : "a reason";
  return verdict;
}

RunReport report_of(std::initializer_list<Verdict> verdicts) {
  RunReport report;
  report.verdicts = verdicts;
  for (const Verdict& verdict : report.verdicts) report.mustpass.push_back(verdict.case_id.text());
  return report;
}

int status_of(const Parts& parts, const RunReport& report) {
  return parts.exit_status(parts.conformance(report), report);
}

// A pass next to it does not help.
bool ends_in(const Parts& parts, Status status, Outcome wanted) {
  const RunReport report =
      report_of({verdict_of(Status::pass), verdict_of(status, "numerics.linear/int8_row/other")});
  return status_of(parts, report) == static_cast<int>(wanted);
}

std::vector<Candidate> candidates(size_t count) {
  std::vector<Candidate> list;
  for (size_t i = 0; i < count; ++i) {
    const CaseId id{Kind::numerics, Op::linear, "int8_row", "c" + std::to_string(10 + i)};
    list.push_back({{id, id.text() + "/builtin_scalar", "scalar"}});
  }
  return list;
}

bool passes_are_conformant(const Parts& parts) {
  return status_of(parts, report_of({verdict_of(Status::pass)})) == 0;
}

bool no_case(const Parts& parts) { return status_of(parts, RunReport{}) == 3; }

bool typo(const Parts& parts) {
  Selection selection;
  selection.filters = {"numerics.linaer/*"};
  return parts.select(selection, candidates(5)).empty();
}

bool only_declined(const Parts& parts) {
  return status_of(parts, report_of({verdict_of(Status::not_supported)})) == 3;
}

bool crash(const Parts& parts) { return ends_in(parts, Status::crash, Outcome::failed); }
bool timeout(const Parts& parts) { return ends_in(parts, Status::timeout, Outcome::failed); }
bool weak(const Parts& parts) { return ends_in(parts, Status::weak_evidence, Outcome::failed); }
bool xpass(const Parts& parts) { return ends_in(parts, Status::xpass, Outcome::failed); }
bool own_fault(const Parts& parts) { return ends_in(parts, Status::internal, Outcome::infrastructure); }
bool failure(const Parts& parts) { return ends_in(parts, Status::fail, Outcome::failed); }

bool not_judged(const Parts& parts) {
  RunReport report = report_of({verdict_of(Status::pass)});
  report.mustpass.push_back("numerics.linear/int8_row/zz");
  return status_of(parts, report) == 1;
}

bool below_the_floor(const Parts& parts) {
  RunReport report = report_of({verdict_of(Status::pass)});
  report.floor.push_back({"int8_row", Op::linear, 2, 1});
  return status_of(parts, report) == 1;
}

bool provider_not_loaded(const Parts& parts) {
  RunReport report = report_of({verdict_of(Status::pass)});
  report.infrastructure.push_back("provider x: not found");
  return status_of(parts, report) == 5;
}

bool many_failures(const Parts& parts) {
  RunReport report;
  for (int i = 0; i < 256; ++i)
    report.verdicts.push_back(verdict_of(Status::fail, "numerics.linear/int8_row/c" + std::to_string(i)));
  return status_of(parts, report) == 1;
}

bool shards_make_the_whole(const Parts& parts) {
  std::multiset<std::string> seen;
  for (uint32_t shard = 1; shard <= 3; ++shard) {
    Selection selection;
    selection.shard = shard;
    selection.shards = 3;
    for (const Candidate& candidate : parts.select(selection, candidates(11)))
      seen.insert(candidate.name.full_id);
  }
  return seen.size() == 11 && std::set<std::string>(seen.begin(), seen.end()).size() == 11;
}

std::vector<Waiver> waiver(bool expired) {
  Waiver waiver;
  waiver.case_glob = "numerics.linear/int8_row/*";
  waiver.provider = "vendor";
  waiver.issue = "https://example.org/1";
  waiver.added = "2026-01-01";
  waiver.expires = "2026-02-01";
  waiver.expired = expired;
  return {waiver};
}

Status waived_status(const Parts& parts, bool expired, Status status, const std::string& provider) {
  std::vector<Waiver> waivers = waiver(expired);
  Verdict verdict = verdict_of(status, kCase, provider);
  parts.waive(waivers, verdict);
  return verdict.status;
}

bool waiver_holds(const Parts& parts) {
  return waived_status(parts, false, Status::fail, "vendor") == Status::waived;
}
bool waiver_expires(const Parts& parts) {
  return waived_status(parts, true, Status::fail, "vendor") == Status::fail;
}
bool waiver_of_another(const Parts& parts) {
  return waived_status(parts, false, Status::fail, "builtin") == Status::fail;
}
bool waiver_not_needed(const Parts& parts) {
  return waived_status(parts, false, Status::pass, "vendor") == Status::xpass;
}

constexpr Question kRunnerQuestions[] = {
    {"runner.passes_are_conformant", "a clean run is not conformant", passes_are_conformant},
    {"runner.no_case", "nothing selected is success", no_case},
    {"runner.typo_in_a_filter", "a filter that matches nothing selects something", typo},
    {"runner.only_declined", "a run that proved nothing is success", only_declined},
    {"runner.failure", "a failure does not fail", failure},
    {"runner.crash", "a crash does not fail", crash},
    {"runner.timeout", "a timeout does not fail", timeout},
    {"runner.weak_evidence", "weak evidence counts as proof", weak},
    {"runner.xpass", "an unexpected pass is not reported", xpass},
    {"runner.own_fault", "a fault of the judge is not reported", own_fault},
    {"runner.not_judged", "a missing verdict of a mustpass case is not noticed", not_judged},
    {"runner.below_the_floor", "too few passes are enough", below_the_floor},
    {"runner.provider_not_loaded", "a provider that did not load is not reported", provider_not_loaded},
    {"runner.many_failures", "256 failures are success", many_failures},
    {"runner.shards_make_the_whole", "shards lose or repeat cases", shards_make_the_whole},
    {"runner.waiver_holds", "a waiver excuses nothing", waiver_holds},
    {"runner.waiver_expires", "an expired waiver excuses", waiver_expires},
    {"runner.waiver_of_another_provider", "a waiver excuses another provider", waiver_of_another},
    {"runner.waiver_not_needed", "a pass in spite of a waiver is not reported", waiver_not_needed},
};

}  // namespace

std::span<const Question> runner_questions() { return kRunnerQuestions; }

}  // namespace qcts::selftest
