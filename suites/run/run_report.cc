// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/run_report.h"

#include <algorithm>
#include <iostream>

#include <unistd.h>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/sha256.h"
#include "suites/base/paths.h"
#include "suites/base/printable.h"
#include "suites/cases/mustpass.h"
#include "suites/judge/expected/coverage.h"
#include "suites/run/environment.h"
#include "suites/run/run.h"
#include "suites/run/static_rows.h"
#include "suites/run/summary.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void write_text(const fs::path& path, const std::string& text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

// The reports in the folder, the one to open first at the front.
std::vector<std::string> written_reports(const fs::path& out) {
  std::vector<std::string> files;
  for (const char* name : {"report.html", "report.json", "junit.xml", "run.jsonl.gz", "run.jsonl"})
    if (fs::exists(out / name)) files.push_back((out / name).string());
  return files;
}

Json goldens_json(const Fixtures& fixtures) {
  Json list = Json::array();
  for (const Golden& golden : fixtures.goldens)
    list.push_back({{"id", golden.id},
                    {"producer", golden.producer},
                    {"sha256", golden.sha256},
                    {"flags", golden.flags},
                    {"emulated", golden.emulated},
                    {"choices", golden.choices}});
  return list;
}

}  // namespace

std::string fixtures_sha256(const std::vector<fs::path>& folders) {
  std::string joined;
  for (const fs::path& folder : folders) joined += file_sha256(folder / "manifest.json") + "\n";
  return sha256_hex(std::as_bytes(std::span(joined)));
}

std::string mustpass_sha256(const std::vector<std::string>& ids) {
  std::string joined;
  for (const std::string& id : ids) joined += id + "\n";
  return sha256_hex(std::as_bytes(std::span(joined)));
}

RunReport report_from(const RunHead& head, const Fixtures& fixtures) {
  const fs::path lists = repository_root() / "suites";
  RunReport report;
  report.suite_version = head.suite_version;
  report.suite_commit = head.suite_commit;
  report.plan = head.plan;
  report.started_utc = head.started_utc;
  report.arguments = head.arguments;
  report.selection = head.selection;
  if (head.shards > 1) {
    report.shard = std::to_string(head.shard) + "/" + std::to_string(head.shards);
    report.selection.push_back("--shard " + report.shard);
  }
  report.seed = head.seed;
  report.gate_latency = head.gate_latency;
  report.fixtures = head.fixtures;
  report.environment = head.environment;
  report.providers = head.providers;
  report.infrastructure = head.infrastructure;
  report.latency_note = head.latency_note;
  report.schemes = schemes_json();
  report.goldens = goldens_json(fixtures);
  report.ledger = choices_json();
  report.readers = readers_json();
  report.mustpass_file = "suites/mustpass/default.txt";
  report.mustpass = load_mustpass(lists / "mustpass" / "default.txt");
  report.mustpass_sha256 = mustpass_sha256(report.mustpass);
  report.floor = load_floor(lists / "mustpass" / "floor.json");
  report.waivers = load_waivers(lists / "waivers.json", today_utc());
  return report;
}

Outcome write_report(RunReport& report, const fs::path& out, bool print_json) {
  std::sort(report.verdicts.begin(), report.verdicts.end(),
            [](const Verdict& a, const Verdict& b) { return a.full_id() < b.full_id(); });
  for (Waiver& waiver : report.waivers) std::sort(waiver.matched.begin(), waiver.matched.end());
  report.latency_trust = latency_trust(report.verdicts);
  suspend_latency(report.latency_trust, report.gate_latency, report.verdicts);
  count_floor(report);
  report.coverage = coverage_json(report.verdicts);
  const Outcome outcome = conformance(report).outcome;
  keep_rows_of_what_ran(report);
  const std::string json = report_json(report).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  write_text(out / "report.json", json);
  write_text(out / "junit.xml", junit_xml(report));
  std::cout << (print_json ? printable_json(json)
                           : summary_text(report, written_reports(out), screen_of(STDOUT_FILENO)))
            << std::flush;
  return outcome;
}

void remove_reports(const fs::path& out) {
  for (const char* stale : {"report.json", "junit.xml", "report.html", "summary.md"}) fs::remove(out / stale);
}

}  // namespace qcts
