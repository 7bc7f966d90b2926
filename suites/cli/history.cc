// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>
#include <memory>
#include <span>

#include <unistd.h>

#include "reference/formats/io/mapped_file.h"
#include "suites/base/paths.h"
#include "suites/base/printable.h"
#include "suites/base/run_error.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/history/history_view.h"
#include "suites/history/page_trend.h"
#include "suites/run/run_report.h"
#include "suites/statement/stated_run.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;

struct HistoryArguments {
  std::string file;
  std::vector<std::string> add;
  HistoryViewOptions view;
  bool json = false, all = false;
};

void append_run(const std::string& file, const std::string& folder) {
  try {
    const Appended added = History(file, Database::Mode::write).append(read_recorded_run(folder));
    std::cerr << "qcts: " << printable(file) << ": ";
    if (added.already_there) {
      std::cerr << printable(folder) << " is run " << added.run << " already\n";
      return;
    }
    const HistoryRun& counts = added.counts;
    std::cerr << "run " << added.run << ", night " << added.nights << " of its series";
    if (added.nights > 1)
      std::cerr << "; " << counts.changed << " verdicts changed, " << counts.added << " new, " << counts.gone
                << " gone";
    std::cerr << "\n";
  } catch (const RunError& error) {
    throw RunError(error.outcome(), std::string(error.what()) + "; not added to the history: qcts history " +
                                        shell_word(file) + " --add " + shell_word(folder) + " tries again");
  }
}

Outcome print_history(const HistoryArguments& words) {
  for (const std::string& run : words.add) append_run(words.file, run);
  History history(words.file, Database::Mode::read);
  HistoryViewOptions options = words.view;
  if (words.all) options.cases = options.nights = 0;
  const std::vector<SeriesView> views = view_history(history, options);
  if (words.json)
    std::cout << printable_json(history_json(views).dump(1, ' ', false,
                                                         nlohmann::ordered_json::error_handler_t::replace))
              << "\n";
  else
    std::cout << history_text(views, options, screen_of(STDOUT_FILENO));
  return Outcome::conformant;
}

}  // namespace

void check_history(const std::string& file) { History(file, Database::Mode::write); }

void show_history(const std::string& file, const fs::path& folder) {
  History history(file, Database::Mode::read);
  const RecordedRun run = read_recorded_run(folder);
  const std::string trend =
      page_trend(history, run.head).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  write_file_atomically(folder / "trend.json", std::as_bytes(std::span(trend)));
  std::optional<RunBefore> before;
  if (std::optional<RecordedRun> last = history.last_before(run))
    before = {.run = std::move(*last), .nights = history.pace_history(run), .replaces = false};
  write_page(folder, statement_line(folder), before);
}

void add_to_history(const std::string& file, const std::string& folder) {
  append_run(file, folder);
  try {
    show_history(file, folder);
  } catch (const std::runtime_error& error) {
    throw RunError(Outcome::infrastructure,
                   std::string("the page does not show the history: ") + error.what());
  }
}

void add_history(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<HistoryArguments>();
  CLI::App* command = app.add_subcommand(
      "history",
      "list the runs of a history, cases whose status changed, and the trend of each latency case");
  command->add_option("file", words->file, "the SQLite file that `qcts run --history` appends to")
      ->required();
  command->add_option("--add", words->add, "first add this finished run (a folder, or a record)")
      ->allow_extra_args(false);
  command->add_option("--filter", words->view.filter,
                      "only cases that this glob matches, anywhere in the id");
  command->add_option("--last", words->view.nights, "nights to show (0: all)")
      ->check(not_negative())
      ->capture_default_str();
  command->add_flag("--all", words->all, "show all nights and all cases whose status changed");
  command->add_flag("--json", words->json, "print JSON (reports/history.schema.json)");
  command->callback([words, &exit_code] { exit_code = exit_code_of([&] { return print_history(*words); }); });
}

}  // namespace qcts::cli
