// SPDX-License-Identifier: BSD-3-Clause
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "reference/formats/io/mapped_file.h"
#include "suites/base/run_error.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/comparison/comparison.h"
#include "suites/run/run_report.h"
#include "suites/statement/badge.h"
#include "suites/statement/stated_run.h"

namespace qcts::cli {
namespace fs = std::filesystem;
namespace {

struct ReportArguments {
  std::filesystem::path folder = "out", before;
  std::string history;
  bool badge = false;
};

// Throws RunError (usage) if the runs ask other questions.
RunBefore comparable_run(const ReportArguments& words) {
  RecordedRun before = read_recorded_run(words.before), now = read_recorded_run(words.folder);
  const std::string why = why_not_comparable(before, now, {.latency = false});
  if (!why.empty()) throw UsageError(words.before.string() + " cannot be the earlier run: " + why);
  return {.run = std::move(before), .nights = {}};
}

// badge.json, an endpoint of shields.io: https://shields.io/badges/endpoint-badge
void write_badge(const std::filesystem::path& folder) {
  std::ifstream in(folder / "report.json");
  const nlohmann::ordered_json report = nlohmann::ordered_json::parse(in);
  const nlohmann::ordered_json& said = report.at("conformance");
  const auto outcome = static_cast<Outcome>(said.at("exit_code").get<int>());
  const bool conformant = said.at("conformant");
  const nlohmann::ordered_json badge = {{"schemaVersion", 1},
                                        {"label", "qcts"},
                                        {"message", conformant                         ? "conformant"
                                                    : outcome == Outcome::conformant   ? "passed"
                                                    : outcome == Outcome::failed       ? "failed"
                                                    : outcome == Outcome::inconclusive ? "inconclusive"
                                                                                       : "nothing proved"},
                                        {"color", conformant                       ? "brightgreen"
                                                  : outcome == Outcome::conformant ? "green"
                                                  : outcome == Outcome::failed     ? "red"
                                                                                   : "yellow"}};
  const std::string text = badge.dump(1) + "\n";
  write_file_atomically(folder / "badge.json", std::as_bytes(std::span(text)));
}

Outcome write_again(const ReportArguments& words) {
  if (words.badge && fs::is_regular_file(words.folder)) {
    for (const fs::path& file : write_statement_badge(words.folder)) std::cout << file.string() << "\n";
    return Outcome::conformant;
  }
  try {
    if (!words.history.empty()) show_history(words.history, words.folder);
    if (!words.before.empty())
      write_page(words.folder, statement_line(words.folder), comparable_run(words));
    else if (words.history.empty())
      write_page(words.folder, statement_line(words.folder));
    if (words.badge) write_badge(words.folder);
  } catch (const RunError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
  std::cout << (words.folder / "report.html").string() << "\n";
  return Outcome::conformant;
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand(
      "report",
      "write report.html and summary.md again, with load.json, generate.json, trend.json and "
      "statement.json if they are there; recompute the counts from the record");
  command
      ->add_option(
          "folder", words->folder,
          "a folder with a report.json from `qcts run` or `qcts merge`; with --badge also a statement file")
      ->capture_default_str();
  command->add_option("--before", words->before,
                      "show what changed since this run (a folder, or a record), in report.json too");
  command->add_option("--history", words->history,
                      "show the trend in this history (trend.json) and, if the folder has no earlier run, "
                      "what changed since the last run in the history");
  command->add_flag("--badge", words->badge,
                    "also write badge.json for shields.io; for a statement, badge.svg and badge.md");
  command->callback([words, &exit_code] { exit_code = exit_code_of([&] { return write_again(*words); }); });
}

}  // namespace qcts::cli
