// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>
#include <memory>

#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/run/merge.h"
#include "suites/run/run.h"

namespace qcts::cli {

void add_merge(CLI::App& app, int& exit_code, const std::vector<std::string>& arguments) {
  auto request = std::make_shared<MergeRequest>();
  auto history = std::make_shared<std::string>();
  request->arguments = arguments;
  CLI::App* command = app.add_subcommand("merge", "join the shards of one run into one report");
  command->add_option("parts", request->parts, "the shards' folders, or their run.jsonl.gz files")
      ->required();
  command->add_option("--fixtures", request->fixtures, "the --fixtures folders of the shards")
      ->allow_extra_args(false);
  command->add_option("--out", request->out, "folder for the reports")->capture_default_str();
  command->add_flag("--json", request->json, "print report.json instead of the summary");
  add_junit_option(*command, request->junit);
  command->add_option("--history", *history, "append the joined run to this SQLite file");
  command->callback([request, history, &exit_code] {
    exit_code = exit_code_of([&] {
      if (history->empty()) return merge(*request);
      check_history(*history);
      const Outcome outcome = merge(*request);
      add_to_history(*history, request->out.string());
      return outcome;
    });
  });
}

}  // namespace qcts::cli
