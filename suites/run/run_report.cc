// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/run_report.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>
#include <stdexcept>

#include <unistd.h>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/sha256.h"
#include "reports/page/page.h"
#include "suites/base/paths.h"
#include "suites/base/printable.h"
#include "suites/cases/conformance/mustpass.h"
#include "suites/cases/conformance/profiles.h"
#include "suites/judge/expected/coverage.h"
#include "suites/run/environment/environment.h"
#include "suites/run/recounted_report.h"
#include "suites/run/run.h"
#include "suites/run/static_rows.h"
#include "suites/run/summary/summary.h"

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

std::vector<std::string> selection_words(const RunHead& head) {
  std::vector<std::string> selection = head.selection;
  if (head.shards > 1)
    selection.push_back("--shard " + std::to_string(head.shard) + "/" + std::to_string(head.shards));
  return selection;
}

// Latency is left out between two kinds of machine.
Json changes_between(const RecordedRun& before, const RecordedRun& now, const PaceHistory& nights) {
  const bool same_machine = why_not_comparable(before, now, {}).empty();
  return changes_json(compare(before, now, {.latency = same_machine}, nights));
}

// Returns null if there is no record, or one of another plan or selection. A record that cannot be read is no
// reason to lose the report.
Json changes_since(const fs::path& file, const fs::path& out) try {
  if (!fs::exists(file)) return nullptr;
  const RecordedRun before = read_recorded_run(file), now = read_recorded_run(out);
  if (!why_not_comparable(before, now, {.latency = false}).empty()) return nullptr;
  return changes_between(before, now, {});
} catch (const std::runtime_error& error) {
  std::cerr << "qcts: could not compare with the previous run: " << error.what() << "\n";
  return nullptr;
}

Json json_of(const fs::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + ": cannot be read");
  Json json = Json::parse(in, nullptr, false);
  if (!json.is_object()) throw std::runtime_error(file.string() + ": not a JSON object");
  return json;
}

void check_schema(const Json& report, const fs::path& file) {
  if (report.value("schema", Json()) != kReportSchema)
    throw std::runtime_error(file.string() + ": written by another version of qcts: its schema is " +
                             report.value("schema", Json()).dump() + ", not " +
                             std::to_string(kReportSchema));
  if (report.value("qcts", Json()) != "report")
    throw std::runtime_error(file.string() + ": not a report from `qcts run`");
}

void write_for_people(const fs::path& folder, const Json& report, const std::vector<Verdict>& verdicts,
                      const std::string& statement) {
  Json measured = Json::object();
  for (const char* name : {"load", "generate", "block", "trend"})
    if (const fs::path file = folder / (std::string(name) + ".json"); fs::exists(file))
      measured[name] = json_of(file);
  write_text(folder / "report.html", page_html(report, verdicts, measured, statement));
  write_text(folder / "summary.md", summary_markdown(report));
}

std::vector<PromisedProfile> promised_profiles(const RunHead& head, const std::vector<std::string>& mustpass,
                                               const Fixtures& fixtures) {
  std::vector<PromisedProfile> promised;
  for (const Json& provider : head.providers) {
    const std::string names = provider.value("profile", "");
    if (names.empty() || provider.value("peer", false)) continue;
    const std::vector<Profile> profiles = profiles_named(names, load_profiles(profiles_file()));
    promised.push_back({provider.at("name"), names, profile_cases(profiles, mustpass, fixtures)});
  }
  return promised;
}

}  // namespace

std::string fixtures_sha256(const std::vector<fs::path>& folders) {
  std::string joined;
  for (const fs::path& folder : folders) {
    joined += file_sha256(folder / "manifest.json") + "\n";
    if (const fs::path table = folder / "kernel_planes.json"; fs::exists(table))
      joined += file_sha256(table) + "\n";
  }
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
  report.selection = selection_words(head);
  if (head.shards > 1) report.shard = std::to_string(head.shard) + "/" + std::to_string(head.shards);
  report.seed = head.seed;
  report.seed_sha256 = head.seed_sha256;
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
  report.profiles = promised_profiles(head, report.mustpass, fixtures);
  // As on the day of the run, so that its record always gives the same report.
  report.waivers = load_waivers(lists / "waivers.json", head.started_utc.substr(0, 10));
  return report;
}

// Describes the judged schemes that are not listed too.
void describe_other_schemes(RunReport& report) {
  std::set<const Scheme*> others;
  for (const Verdict& verdict : report.verdicts)
    if (const Scheme* scheme = find_scheme(verdict.case_id.scheme); scheme && !is_listed(*scheme))
      others.insert(scheme);
  if (!others.empty()) report.schemes = schemes_json(std::vector(others.begin(), others.end()));
}

Outcome print_stopped(RunReport& report, const fs::path& out, const ReportOptions& options) {
  std::ranges::sort(report.verdicts, {}, &Verdict::full_id);
  std::cout << summary_text(report, {(out / "run.jsonl").string()}, screen_of(STDOUT_FILENO),
                            options.durations)
            << std::flush;
  return Outcome::failed;
}

void count(RunReport& report) {
  std::sort(report.verdicts.begin(), report.verdicts.end(),
            [](const Verdict& a, const Verdict& b) { return a.full_id() < b.full_id(); });
  for (Waiver& waiver : report.waivers) std::sort(waiver.matched.begin(), waiver.matched.end());
  describe_other_schemes(report);
  report.latency_trust = latency_trust(report.verdicts);
  suspend_latency(report.latency_trust, report.gate_latency, report.verdicts);
  count_floor(report);
  report.coverage = coverage_json(report.verdicts);
}

Json counted_json(RunReport& report) {
  keep_rows_of_what_ran(report);
  return report_json(report);
}

Outcome write_report(RunReport& report, const fs::path& out, const ReportOptions& options) {
  count(report);
  report.changes = changes_since(out / "before.jsonl.gz", out);
  const Outcome outcome = conformance(report).outcome;
  const Json json = counted_json(report);
  const std::string text = report_text(json);
  write_text(out / "report.json", text);
  write_text(out / "junit.xml", junit_xml(report, options.junit));
  compress_record(out);
  write_for_people(out, json, report.verdicts, kNoStatement);
  std::cout << (options.print_json
                    ? printable_json(text)
                    : summary_text(report, written_reports(out), screen_of(STDOUT_FILENO), options.durations))
            << std::flush;
  return outcome;
}

void write_page(const fs::path& folder, const std::string& statement,
                const std::optional<RunBefore>& before) {
  const fs::path file = folder / "report.json";
  Json report = json_of(file);
  check_schema(report, file);
  try {
    const std::vector<Verdict> verdicts = recounted_verdicts(folder, report);
    if (before && (before->replaces || report.at("changes").is_null())) {
      report["changes"] = changes_between(before->run, read_recorded_run(folder), before->nights);
      write_text(file, report_text(report));
    }
    write_for_people(folder, report, verdicts, statement);
  } catch (const Json::exception& error) {
    throw std::runtime_error(file.string() + ": not a report from `qcts run`: " + error.what());
  }
}

void remove_reports(const fs::path& out) {
  for (const char* stale : {"report.json", "junit.xml", "report.html", "summary.md", "trend.json"})
    fs::remove(out / stale);
}

void start_reports(const fs::path& out) {
  remove_reports(out);
  if (!keep_as_before(out).empty() && fs::exists(out / "statement.json"))
    fs::rename(out / "statement.json", out / "before.statement.json");
}

}  // namespace qcts
