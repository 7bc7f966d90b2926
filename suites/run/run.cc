// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/run.h"

#include <chrono>
#include <iostream>

#include "suites/base/json_document.h"
#include "suites/run/run_execution.h"
#include "suites/run/run_report.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

Outcome print_list(const RunRequest& request, const RunSetup& setup, const RunChoice& choice) {
  if (request.json) {
    Json list = {{"cases", Json::array()}};
    for (const Candidate& candidate : choice.chosen) list["cases"].push_back(candidate.name.full_id);
    if (request.list_inputs) {
      list["inputs"] = Json::array();
      for (const Candidate& candidate : choice.chosen)
        list["inputs"].push_back(choice.candidates.input_text(candidate));
    }
    print_json("list", list);
  } else {
    for (const Candidate& candidate : choice.chosen) {
      std::cout << candidate.name.full_id;
      if (request.list_inputs) std::cout << "\t" << choice.candidates.input_text(candidate);
      std::cout << "\n";
    }
  }
  const std::vector<std::string>& faults = setup.head.infrastructure;
  if (faults.empty()) return Outcome::conformant;
  throw RunError(Outcome::infrastructure, faults.front());
}

}  // namespace

Outcome run(const RunRequest& request) {
  const auto began = std::chrono::steady_clock::now();
  if (!request.list) check_unfinished(request);
  Progress progress(Progress::on_standard_error(request.progress));
  Interruption interruption;
  const std::unique_ptr<RunSetup> setup = set_up(request, progress);
  progress.say("expanding plan " + request.plan);
  const RunChoice choice = choose_cases(request, *setup);
  const bool is_empty = choice.chosen.empty() && setup->head.infrastructure.empty();
  // merge needs every shard's record, even an empty one.
  if (is_empty && (setup->head.all_cases == 0 || request.list))
    throw RunError(Outcome::nothing_proved, why_none_is_chosen(request, *setup));
  progress.clear();
  if (request.list) return print_list(request, *setup, choice);
  RunReport report = judge_cases(request, *setup, choice, progress, interruption);
  if (is_empty) throw RunError(Outcome::nothing_proved, why_none_is_chosen(request, *setup));
  report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  progress.clear();
  const ReportOptions options = {
      .print_json = request.json, .junit = request.junit, .durations = request.durations};
  return report.stopped.empty() ? write_report(report, request.out, options)
                                : print_stopped(report, request.out, options);
}

}  // namespace qcts
