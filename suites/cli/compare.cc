// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>
#include <memory>

#include <unistd.h>

#include "suites/base/printable.h"
#include "suites/base/run_error.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/comparison/comparison.h"
#include "suites/comparison/digests.h"
#include "suites/history/history.h"

namespace qcts::cli {
namespace {

constexpr size_t kLines = 20;

struct CompareArguments {
  std::vector<std::string> runs;
  std::string history;
  bool json = false, markdown = false, all = false, no_latency = false, digests = false;
};

RunComparison comparison_of(const CompareArguments& words) {
  const CompareOptions options{.latency = !words.no_latency};
  const size_t wanted = words.history.empty() ? 2 : 1;
  if (words.runs.size() != wanted)
    throw UsageError(wanted == 2 ? "compare needs two runs, or one run and --history FILE"
                                 : "compare with --history needs one run");
  if (words.history.empty())
    return compare(read_recorded_run(words.runs[0]), read_recorded_run(words.runs[1]), options);
  History history(words.history, Database::Mode::read);
  const RecordedRun now = read_recorded_run(words.runs[0]);
  const std::optional<RecordedRun> before = history.last_before(now);
  if (!before)
    throw RunError(Outcome::nothing_proved, words.history + " has no earlier run of plan " + now.head.plan +
                                                " on " + machine_class_of(now.head) +
                                                " with the same selection and threads");
  return compare(*before, now, options, history.pace_history(now));
}

Outcome print_digests(const CompareArguments& words) {
  if (words.runs.size() != 2)
    throw UsageError("--digests wants two runs: one on a device, then one of the executor");
  const Digests digests = compare_digests(words.runs[0], words.runs[1]);
  std::cout << printable(digests.text()) << "\n";
  return digests.differing() == 0 ? Outcome::conformant : Outcome::failed;
}

Outcome print_comparison(const CompareArguments& words) {
  if (words.digests) return print_digests(words);
  const RunComparison comparison = comparison_of(words);
  const size_t lines = words.all ? 0 : kLines;
  if (words.json)
    std::cout << printable_json(comparison_json(comparison)
                                    .dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace))
              << "\n";
  else
    std::cout << (words.markdown ? comparison_markdown(comparison, lines)
                                 : comparison_text(comparison, lines, screen_of(STDOUT_FILENO)));
  return outcome_of(comparison);
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "say what changed from one run to another: verdicts, latency, sizes, environment");
  command
      ->add_option("runs", words->runs,
                   "the earlier and the later run: folders with run.jsonl or run.jsonl.gz, or such files")
      ->required()
      ->expected(1, 2);
  command->add_option("--history", words->history,
                      "compare with the last run in this history, whose nights show how much latency varies");
  command->add_flag("--no-latency", words->no_latency, "compare everything but latency");
  command->add_flag("--all", words->all, "print all cases, not the first 20 of each list");
  CLI::Option* json = command->add_flag("--json", words->json, "print JSON (reports/comparison.schema.json)");
  CLI::Option* markdown = command->add_flag("--markdown", words->markdown, "print Markdown")->excludes(json);
  command
      ->add_flag(
          "--digests", words->digests,
          "compare the outputs of a run on a device, the first, with those of provider cudaemu bit for bit")
      ->excludes(json)
      ->excludes(markdown)
      ->excludes("--history");
  command->footer(
      "Exit code: 1 if a case newly fails, is gone, is newly not supported, or is slower by more than its "
      "interval; 4 if only the slowdown is in question; 3 if the runs cannot be compared; otherwise 0.");
  command->callback(
      [words, &exit_code] { exit_code = exit_code_of([&] { return print_comparison(*words); }); });
}

}  // namespace qcts::cli
