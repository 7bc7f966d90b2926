// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>
#include <memory>

#include "suites/base/run_error.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/run/run_report.h"

namespace qcts::cli {
namespace {

Outcome write_again(const std::filesystem::path& folder) {
  try {
    write_page(folder);
  } catch (const std::runtime_error& error) {
    throw RunError(Outcome::usage, error.what());
  }
  std::cout << (folder / "report.html").string() << "\n";
  return Outcome::conformant;
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto folder = std::make_shared<std::filesystem::path>("out");
  CLI::App* command = app.add_subcommand(
      "report", "write report.html and summary.md again, with load.json and generate.json if they are there");
  command->add_option("folder", *folder, "a folder with a report.json of `qcts run` or `qcts merge`")
      ->capture_default_str();
  command->callback([folder, &exit_code] { exit_code = exit_code_of([&] { return write_again(*folder); }); });
}

}  // namespace qcts::cli
