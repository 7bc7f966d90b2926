// SPDX-License-Identifier: BSD-3-Clause
// Writes JUnit XML for Jenkins, GitLab and GitHub: a testsuite per kind, a testcase per cell or verdict, and
// one per provider that could not be judged.
#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "reports/cells.h"
#include "reports/failure_title.h"
#include "reports/markup.h"
#include "reports/report.h"

namespace qcts {
namespace {

std::string seconds(double wall_us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", wall_us / 1e6);
  return text;
}

enum class Result { passed, failure, error, skipped };

Result result_of(const Verdict& verdict, bool gate_latency) {
  switch (verdict.status) {
    case Status::pass:
      return Result::passed;
    case Status::crash:
    case Status::timeout:
    case Status::resource:
    case Status::internal:
      return Result::error;
    default:
      return blocks_conformance(verdict, gate_latency) ? Result::failure : Result::skipped;
  }
}

struct Testcase {
  std::string classname, name;
  double wall_us = 0;
  Result result = Result::passed;
  std::string type, message, body;  // unless passed
};

std::string xml_of(const Testcase& test) {
  std::string xml = "    <testcase classname=\"" + markup_text(test.classname) + "\" name=\"" +
                    markup_text(test.name) + "\" time=\"" + seconds(test.wall_us) + "\"";
  if (test.result == Result::passed) return xml + "/>\n";
  const std::string message = " message=\"" + markup_text(test.message) + "\"";
  if (test.result == Result::skipped) return xml + ">\n      <skipped" + message + "/>\n    </testcase>\n";
  const std::string element = test.result == Result::error ? "error" : "failure";
  return xml + ">\n      <" + element + " type=\"" + markup_text(test.type) + "\"" + message + ">" +
         markup_text(test.body) + "</" + element + ">\n    </testcase>\n";
}

std::string classname_of(Kind kind, Op op, const std::string& scheme) {
  return std::string(kind_name(kind)) + "." + std::string(op_name(op)) + "." + scheme;
}

std::string mismatch_text(const Mismatch& m) {
  return m.where + ": want " + m.want + ", got " + m.got + " (" + std::to_string(m.count) + " of " +
         std::to_string(m.total) + " differ)";
}

Testcase testcase_of(const Verdict& verdict, bool gate_latency) {
  const CaseId& id = verdict.case_id;
  Testcase test{classname_of(id.kind, id.op, id.scheme),
                verdict.full_id(),
                verdict.wall_us,
                result_of(verdict, gate_latency),
                std::string(status_name(verdict.status)),
                clipped_text(verdict.reason),
                ""};
  if (test.result == Result::skipped) test.message = test.type + ": " + test.message;
  if (verdict.mismatch) test.body = clipped_text(mismatch_text(*verdict.mismatch)) + "\n";
  if (const std::string hypothesis = hypothesis_of(verdict.reason); !hypothesis.empty())
    test.body += "hypothesis: " + clipped_text(hypothesis) + "\n";
  test.body += "rerun: " + clipped_text(verdict.rerun);
  return test;
}

// The worst result; a cell is skipped only if nothing in it passed.
Result result_of(const Cell& cell, bool gate_latency) {
  bool error = false, failure = false, passed = false;
  for (const Verdict* verdict : cell.verdicts) {
    const Result one = result_of(*verdict, gate_latency);
    error = error || one == Result::error;
    failure = failure || one == Result::failure;
    passed = passed || one == Result::passed;
  }
  return error ? Result::error : failure ? Result::failure : passed ? Result::passed : Result::skipped;
}

// Lists the cases of each group by id, and its simplest one with its reason and the line that repeats it.
std::string failures_text(const std::vector<Group>& groups, size_t& listed) {
  constexpr size_t kMaxListed = 40;
  std::string text;
  for (const Group& group : groups) {
    if (!group.blocks) continue;
    const Verdict& example = *group.verdicts.front();
    text += group.provider + " " + std::string(status_name(group.status)) + ": " + failure_title(group) +
            " (" + std::to_string(group.verdicts.size()) + ")\n  " + clipped_text(example.reason) +
            "\n  rerun: " + clipped_text(example.rerun) + "\n";
    size_t left_out = 0;
    for (const Verdict* verdict : group.verdicts)
      if (listed < kMaxListed)
        text += "  " + verdict->full_id() + "\n", ++listed;
      else
        ++left_out;
    if (left_out != 0) text += "  and " + std::to_string(left_out) + " more, in run.jsonl.gz\n";
  }
  return text;
}

Testcase testcase_of(const Cell& cell, bool gate_latency) {
  Testcase test{classname_of(cell.kind, cell.op, cell.scheme),
                cell.implementation(),
                cell.wall_us,
                result_of(cell, gate_latency),
                "",
                "",
                ""};
  if (test.result == Result::passed) return test;
  const std::vector<Group> groups = groups_of(cell.verdicts, gate_latency);
  const Group& first = groups.front();
  test.type = status_name(first.status);
  const std::string count =
      std::to_string(first.verdicts.size()) + " of " + std::to_string(cell.verdicts.size());
  test.message = count + " " + test.type + ": " + failure_title(first);
  if (test.result == Result::skipped) return test;
  size_t listed = 0;
  test.body = failures_text(groups, listed);
  return test;
}

// Reports what could not be judged: a provider that does not load has no cases to show it.
std::string infrastructure_testcase(const std::string& line) {
  return "    <testcase classname=\"infrastructure\" name=\"" + markup_text(line) +
         "\" time=\"0\">\n      <error type=\"infrastructure\" message=\"" + markup_text(line) +
         "\"/>\n    </testcase>\n";
}

struct Testsuite {
  std::string cases;
  size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  double wall_us = 0;

  void add(const std::string& xml, Result result, double us) {
    cases += xml;
    ++tests;
    failures += result == Result::failure;
    errors += result == Result::error;
    skipped += result == Result::skipped;
    wall_us += us;
  }
  void add(const Testcase& test) { add(xml_of(test), test.result, test.wall_us); }
  std::string numbers() const {
    return " tests=\"" + std::to_string(tests) + "\" failures=\"" + std::to_string(failures) +
           "\" errors=\"" + std::to_string(errors) + "\"";
  }
};

std::string properties(const RunReport& report) {
  std::string xml = "    <properties>\n";
  const auto add = [&](const char* name, const std::string& value) {
    xml += std::string("      <property name=\"") + name + "\" value=\"" + markup_text(value) + "\"/>\n";
  };
  add("qcts", report.suite_version);
  add("commit", report.suite_commit);
  add("plan", report.plan);
  add("cpu", report.environment.value("cpu_model", ""));
  if (report.environment.contains("device")) add("device", report.environment["device"].value("name", ""));
  for (const auto& provider : report.providers) {
    const std::string version = provider.value("version", "");
    add("provider", provider.value("name", "") + (version.empty() ? "" : " " + version));
  }
  return xml + "    </properties>\n";
}

}  // namespace

std::string junit_xml(const RunReport& report, JunitForm form) {
  std::map<std::string, Testsuite> suites;
  if (form == JunitForm::cells)
    for (const Cell& cell : cells_of(report.verdicts))
      suites[std::string(kind_name(cell.kind))].add(testcase_of(cell, report.gate_latency));
  else
    for (const Verdict& verdict : report.verdicts)
      suites[std::string(kind_name(verdict.case_id.kind))].add(testcase_of(verdict, report.gate_latency));
  for (const std::string& line : report.infrastructure)
    suites["infrastructure"].add(infrastructure_testcase(line), Result::error, 0);
  Testsuite total;
  for (const auto& [kind, suite] : suites) {
    total.tests += suite.tests;
    total.failures += suite.failures;
    total.errors += suite.errors;
    total.wall_us += suite.wall_us;
  }
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"qcts\"" +
                    total.numbers() + " time=\"" + seconds(total.wall_us) + "\">\n";
  const std::string hostname = report.environment.value("hostname", "");
  std::string started = report.started_utc;
  if (started.ends_with("Z")) started.pop_back();  // the schemas of readers allow no time zone
  for (const auto& [kind, suite] : suites)
    xml += "  <testsuite name=\"" + markup_text(kind) + "\"" + suite.numbers() + " skipped=\"" +
           std::to_string(suite.skipped) + "\" time=\"" + seconds(suite.wall_us) + "\" timestamp=\"" +
           markup_text(started) + "\"" +
           (hostname.empty() ? "" : " hostname=\"" + markup_text(hostname) + "\"") + ">\n" +
           properties(report) + suite.cases + "  </testsuite>\n";
  return xml + "</testsuites>\n";
}

}  // namespace qcts
