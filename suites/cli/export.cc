// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/export.h"

#include <fstream>
#include <iostream>
#include <memory>

#include "reference/formats/io/mapped_file.h"
#include "reports/waivers.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/history/sarif.h"
#include "suites/run/environment/environment.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ExportArguments {
  std::string run, format, out;
};

RunRecord read_record(const std::string& given) {
  const std::filesystem::path file = record_of(given);
  if (!std::filesystem::is_regular_file(file))
    throw UsageError(given + ": there is no record of a run (run.jsonl or run.jsonl.gz)");
  try {
    return read_run_record(file);
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

std::string exported_text(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A waived failure is not an error.
std::string annotations(RunRecord record) {
  std::vector<Waiver> waivers = load_waivers(repository_root() / "suites" / "waivers.json", today_utc());
  for (Verdict& verdict : record.verdicts) apply_waivers(waivers, verdict);
  return github_annotations(record);
}

std::string exported_run(const ExportArguments& words) {
  const RunRecord record = read_record(words.run);
  if (record.truncated || record.verdicts.size() != record.head.cases)
    std::cerr << "qcts: note: the run is unfinished: " << record.verdicts.size() << " of "
              << record.head.cases << " cases\n";
  if (words.format == "csv") return csv_text(record);
  if (words.format == "markdown") return run_markdown(record);
  if (words.format == "github") return annotations(record);
  const Json json = words.format == "bmf" ? bmf_json(record) : gbench_json(record);
  if (words.format == "bmf" ? json.empty() : json["benchmarks"].empty())
    throw RunError(Outcome::nothing_proved,
                   words.run + " has no latency case to export (plan latency has some)");
  return exported_text(json);
}

// Reads what `qcts check --json` printed.
std::string exported_check(const ExportArguments& words) {
  std::ifstream file(words.run);
  std::istream& in = words.run == "-" ? std::cin : file;
  if (!in) throw UsageError(words.run + ": cannot be read");
  try {
    return exported_text(sarif_json(Json::parse(in), suite_version()));
  } catch (const std::exception& error) {
    throw UsageError(words.run + ": " + error.what());
  }
}

Outcome write_export(const ExportArguments& words) {
  const std::string text = words.format == "sarif" ? exported_check(words) : exported_run(words);
  if (words.out.empty())
    std::cout << text << std::flush;
  else
    write_file_atomically(words.out, std::as_bytes(std::span(text)));
  return Outcome::conformant;
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand("export", "write a run for other programs");
  command
      ->add_option(
          "run", words->run,
          "a folder with run.jsonl or run.jsonl.gz, or such a file; for sarif, what `qcts check --json` "
          "printed (-: standard input)")
      ->required();
  command
      ->add_option(
          "--format", words->format,
          "gbench: latency as Google Benchmark's JSON, for its compare.py; bmf: the same for Bencher; csv: "
          "one line per verdict; markdown; github: GitHub Actions annotations; sarif: what check found")
      ->required()
      ->check(CLI::IsMember({"gbench", "bmf", "csv", "markdown", "github", "sarif"}));
  command->add_option("--out", words->out, "file to write; default: standard output");
  command->callback([words, &exit_code] { exit_code = exit_code_of([&] { return write_export(*words); }); });
}

}  // namespace qcts::cli
