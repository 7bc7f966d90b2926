// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include <unistd.h>

#include "reports/report.h"
#include "suites/base/json_document.h"
#include "suites/base/paths.h"
#include "suites/base/terminal.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/judge/latency/latency_measures.h"
#include "suites/run/progress.h"
#include "suites/selftest/timer_selftest.h"

namespace qcts::cli {
namespace {

// Fails if it has more alarms than chance allows, if intervals contain the truth less often than they
// promise, if a planted slowdown was found in fewer than nine of ten runs, or if one of 0 % was found more
// often than chance allows.
Outcome conclude_stopwatch(const TimerSelftestRequest& request, const TimerSelftestRow& sum) {
  const uint64_t allowed = allowed_alarms(sum.runs);
  const double n = static_cast<double>(sum.runs);
  const bool blind = request.planted >= 0.03 && static_cast<double>(sum.found) < 0.9 * n;
  const bool sees_ghosts = request.planted == 0 && sum.found > allowed;
  static_assert(kLatencyConfidence == 1 - kAlarmLevel, "one law of chance for both");
  const bool too_sure = sum.itself_missed > allowed;
  return sum.alarms > allowed || too_sure || blind || sees_ghosts ? Outcome::failed : Outcome::conformant;
}

TimerSelftestRow sum_of(const std::vector<TimerSelftestRow>& rows) {
  TimerSelftestRow sum;
  for (const TimerSelftestRow& row : rows) {
    sum.runs += row.runs;
    sum.alarms += row.alarms;
    sum.found += row.found;
    sum.itself_missed += row.itself_missed;
    sum.planted_missed += row.planted_missed;
    sum.widest = std::max(sum.widest, row.widest);
  }
  return sum;
}

nlohmann::ordered_json row_json(const TimerSelftestRow& row) {
  return {{"runs", row.runs},
          {"alarms", row.alarms},
          {"found", row.found},
          {"itself_missed", row.itself_missed},
          {"planted_missed", row.planted_missed},
          {"widest", row.widest}};
}

void print_rows_json(const TimerSelftestRequest& request, const std::vector<TimerSelftestRow>& rows,
                     const TimerSelftestRow& sum) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TimerSelftestRow& row : rows) {
    list.push_back({{"case", row.full_id}});
    list.back().update(row_json(row));
  }
  print_json("stopwatch", {{"planted", request.planted},
                           {"alarms_allowed", allowed_alarms(sum.runs)},
                           {"all", row_json(sum)},
                           {"rows", list}});
}

void print_rows(const TimerSelftestRequest& request, const std::vector<TimerSelftestRow>& rows,
                const TimerSelftestRow& sum) {
  Printout out(screen_of(STDOUT_FILENO));
  std::vector<TableRow> table;
  for (const TimerSelftestRow& row : rows)
    table.push_back({row.full_id, std::to_string(row.alarms), std::to_string(row.found),
                     std::to_string(row.runs), fixed(100 * row.widest, 2) + "%"});
  out.table({{"case"},
             {"alarms", Align::right},
             {"found", Align::right},
             {"of", Align::right},
             {"widest", Align::right}},
            table);
  const double n = static_cast<double>(sum.runs);
  const auto percent = [n](uint64_t count) { return fixed(100 * static_cast<double>(count) / n, 1) + " %"; };
  const auto declared = [](double part) {
    char text[32];
    std::snprintf(text, sizeof text, "%g %%", 100 * part);
    return std::string(text);
  };
  out.text("against itself: " + std::to_string(sum.alarms) + " of " + std::to_string(sum.runs) +
           " alarmed, " + percent(sum.alarms) + " (declared: " + declared(kAlarmLevel) + ", chance allows " +
           std::to_string(allowed_alarms(sum.runs)) + ")");
  out.text("its interval of " + declared(kLatencyConfidence) + " missed 1 in " + percent(sum.itself_missed));
  out.text("planted " + declared(request.planted) + ": found in " + percent(sum.found) +
           "; its interval missed it in " + percent(sum.planted_missed));
  std::cout << out.str();
}

}  // namespace

void add_stopwatch(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<TimerSelftestRequest>();
  CLI::App* command = app.add_subcommand(
      "stopwatch",
      "test the timer: time builtin kernels many times against themselves and against slowed copies");
  command->add_option("--plan", words->plan, "a plan in suites/plans, or the path to one")
      ->capture_default_str();
  command->add_option("--filter", words->filters, "as for run")->allow_extra_args(false);
  command->add_option("--runs", words->runs, "number of runs")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--planted", words->planted, "fraction by which the copy is slower")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command->add_option("--budget", words->budget_s, "seconds per case and run")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([words, json, &exit_code] {
    exit_code = exit_code_of([&] {
      Progress progress(Progress::on_standard_error(true));
      const auto rows = run_timer_selftest(*words, [&](uint64_t done) {
        progress.say(std::to_string(done) + " of " + std::to_string(words->runs) + " runs");
      });
      progress.clear();
      const TimerSelftestRow sum = sum_of(rows);
      if (*json)
        print_rows_json(*words, rows, sum);
      else
        print_rows(*words, rows, sum);
      return conclude_stopwatch(*words, sum);
    });
  });
}

}  // namespace qcts::cli
