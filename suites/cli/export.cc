// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/export.h"

#include <iostream>
#include <memory>

#include "reference/formats/io/mapped_file.h"
#include "suites/base/run_error.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"

namespace qcts::cli {
namespace {

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

std::string exported(const RunRecord& record, const ExportArguments& words) {
  if (words.format == "csv") return csv_text(record);
  if (words.format == "markdown") return run_markdown(record);
  const nlohmann::ordered_json json = gbench_json(record);
  if (json["benchmarks"].empty())
    throw RunError(Outcome::nothing_proved,
                   words.run + " has no latency case to export (plan latency has some)");
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Outcome write_export(const ExportArguments& words) {
  const RunRecord record = read_record(words.run);
  if (record.truncated || record.verdicts.size() != record.head.cases)
    std::cerr << "qcts: note: the run is unfinished: " << record.verdicts.size() << " of "
              << record.head.cases << " cases\n";
  const std::string text = exported(record, words);
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
  command->add_option("run", words->run, "a folder with run.jsonl or run.jsonl.gz, or such a file")
      ->required();
  command
      ->add_option(
          "--format", words->format,
          "gbench: latency as Google Benchmark's JSON, for its compare.py; csv: a line a verdict; markdown")
      ->required()
      ->check(CLI::IsMember({"gbench", "csv", "markdown"}));
  command->add_option("--out", words->out, "file to write; default: standard output");
  command->callback([words, &exit_code] { exit_code = exit_code_of([&] { return write_export(*words); }); });
}

}  // namespace qcts::cli
