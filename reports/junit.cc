// SPDX-License-Identifier: BSD-3-Clause
// Writes JUnit XML for Jenkins, GitLab and GitHub: a testsuite per kind, a testcase per verdict, and one per
// provider that could not be judged.
#include <cstdio>
#include <map>

#include "reports/report.h"

namespace qcts {
namespace {

// XML 1.0 allows no control characters but tab, line feed and carriage return.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r' ? '?' : c;
    }
  }
  return out;
}

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

std::string body(const Verdict& verdict) {
  std::string text;
  if (verdict.mismatch) {
    const Mismatch& m = *verdict.mismatch;
    text += m.where + ": want " + m.want + ", got " + m.got + " (" + std::to_string(m.count) + " of " +
            std::to_string(m.total) + " differ)\n";
  }
  return text + verdict.rerun;
}

std::string testcase(const Verdict& verdict, Result result) {
  const CaseId& parts = verdict.case_id;
  std::string xml = "    <testcase classname=\"" +
                    escaped(std::string(kind_name(parts.kind)) + "." + std::string(op_name(parts.op)) + "." +
                            parts.scheme) +
                    "\" name=\"" + escaped(verdict.full_id()) + "\" time=\"" + seconds(verdict.wall_us) +
                    "\"";
  if (result == Result::passed) return xml + "/>\n";
  const std::string attributes = " type=\"" + std::string(status_name(verdict.status)) + "\" message=\"" +
                                 escaped(verdict.reason) + "\"";
  if (result == Result::skipped)
    return xml + ">\n      <skipped message=\"" +
           escaped(std::string(status_name(verdict.status)) + ": " + verdict.reason) +
           "\"/>\n    </testcase>\n";
  const std::string element = result == Result::error ? "error" : "failure";
  return xml + ">\n      <" + element + attributes + ">" + escaped(body(verdict)) + "</" + element +
         ">\n    </testcase>\n";
}

// Reports what could not be judged: a provider that does not load has no cases to show it.
std::string infrastructure_testcase(const std::string& line) {
  return "    <testcase classname=\"infrastructure\" name=\"" + escaped(line) +
         "\" time=\"0\">\n      <error type=\"infrastructure\" message=\"" + escaped(line) +
         "\"/>\n    </testcase>\n";
}

}  // namespace

std::string junit_xml(const RunReport& report) {
  struct Suite {
    std::string cases;
    size_t tests = 0, failures = 0, errors = 0, skipped = 0;
    double wall_us = 0;
  };
  std::map<std::string, Suite> suites;
  Suite total;
  for (const Verdict& verdict : report.verdicts) {
    const Result result = result_of(verdict, report.gate_latency);
    Suite& suite = suites[std::string(kind_name(verdict.case_id.kind))];
    suite.cases += testcase(verdict, result);
    for (Suite* counted : {&suite, &total}) {
      ++counted->tests;
      counted->failures += result == Result::failure;
      counted->errors += result == Result::error;
      counted->skipped += result == Result::skipped;
      counted->wall_us += verdict.wall_us;
    }
  }
  for (const std::string& line : report.infrastructure) {
    Suite& suite = suites["infrastructure"];
    suite.cases += infrastructure_testcase(line);
    for (Suite* counted : {&suite, &total}) ++counted->tests, ++counted->errors;
  }
  const auto numbers = [](const Suite& suite) {
    return " tests=\"" + std::to_string(suite.tests) + "\" failures=\"" + std::to_string(suite.failures) +
           "\" errors=\"" + std::to_string(suite.errors) + "\" skipped=\"" + std::to_string(suite.skipped) +
           "\" time=\"" + seconds(suite.wall_us) + "\"";
  };
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"qcts\"" + numbers(total) + ">\n";
  for (const auto& [kind, suite] : suites)
    xml += "  <testsuite name=\"" + escaped(kind) + "\"" + numbers(suite) + " timestamp=\"" +
           escaped(report.started_utc) + "\">\n" + suite.cases + "  </testsuite>\n";
  return xml + "</testsuites>\n";
}

}  // namespace qcts
