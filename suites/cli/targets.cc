// SPDX-License-Identifier: BSD-3-Clause
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "reference/formats/io/mapped_file.h"
#include "reports/report.h"
#include "suites/base/run_error.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/timing/targets.h"

namespace qcts::cli {
namespace {

struct TargetArguments {
  std::string report = "out/report.json", provider = "builtin", out;
  double margin_percent = 10;
};

LatencyTargets targets_of(const TargetArguments& words) {
  std::ifstream in(words.report);
  const nlohmann::ordered_json report = nlohmann::ordered_json::parse(in, nullptr, false);
  if (report.is_discarded()) throw UsageError(words.report + ": not JSON, or missing");
  try {
    return propose_targets(report, words.provider, words.margin_percent / 100);
  } catch (const std::exception& error) {
    throw UsageError(words.report + ": " + error.what());
  }
}

Outcome propose(const TargetArguments& words) {
  LatencyTargets targets = targets_of(words);
  if (targets.targets.empty())
    throw RunError(Outcome::nothing_proved, words.report + " holds no latency verdict of provider " +
                                                words.provider + " with a trusted interval");
  const auto text = [&] { return targets_json(targets).dump(2) + "\n"; };
  if (words.out.empty()) {
    std::cout << text();
    return Outcome::conformant;
  }
  try {
    targets = replaced_targets(load_latency_targets(words.out, targets.machine_class), targets);
  } catch (const std::exception& error) {
    throw UsageError(error.what());
  }
  const std::filesystem::path file = std::filesystem::path(words.out) / (targets.machine_class + ".json");
  const std::string whole = text();
  write_file_atomically(file, std::as_bytes(std::span(whole)));
  std::cout << file.string() << ": " << targets.targets.size() << " targets\n";
  return Outcome::conformant;
}

}  // namespace

void add_targets(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<TargetArguments>();
  CLI::App* command = app.add_subcommand("targets", "latency targets of a machine class");
  command->require_subcommand(1);
  CLI::App* verb = command->add_subcommand(
      "propose",
      "derive targets from a report's latency verdicts, with a margin, in the format of suites/targets");
  verb->add_option("--report", words->report, "a report.json with latency")->capture_default_str();
  verb->add_option("--provider", words->provider,
                   "provider of the verdicts; targets of other providers stay in the file")
      ->capture_default_str();
  verb->add_option("--margin", words->margin_percent, "percent by which a later run may be worse")
      ->check(CLI::Range(0.0, 90.0))
      ->capture_default_str();
  verb->add_option("--out", words->out, "folder for MACHINE_CLASS.json; default: standard output")
      ->check(CLI::ExistingDirectory);
  verb->callback([words, &exit_code] { exit_code = exit_code_of([&] { return propose(*words); }); });
}

}  // namespace qcts::cli
