// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/run_execution.h"

#include <algorithm>
#include <set>
#include <thread>

#include "suites/cases/case_key.h"
#include "suites/run/run_report.h"
#include "suites/run/workers/supervisor.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

constexpr unsigned kMaxJobs = 4;         // unless --jobs says more
constexpr double kLatencyTimeouts = 10;  // timeout of a latency case, in budgets

// Returns the earlier record of this run, whose verdicts go to `report`. Throws UsageError if it belongs to a
// different run.
RunRecord resumed_record(const fs::path& file, const RunSetup& setup, const RunChoice& choice,
                         RunReport& report) {
  RunRecord before;
  try {
    before = read_run_record(file);
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string("cannot be resumed: ") + error.what());
  }
  std::string other = difference(before.head, setup.head);
  if (other.empty() && before.head.shard != setup.head.shard)
    other = "shard: " + std::to_string(before.head.shard) + " there, " + std::to_string(setup.head.shard) +
            " here";
  if (!other.empty())
    throw UsageError(file.string() + " is of a different run and cannot be resumed: " + other);
  report = report_from(before.head, setup.fixtures);
  std::set<std::string> known;
  for (const Candidate& candidate : choice.chosen) known.insert(candidate.name.full_id);
  for (Verdict& verdict : before.verdicts) {
    if (!known.contains(verdict.full_id()))
      throw UsageError(file.string() + " has a verdict on a case that is not selected: " + verdict.full_id());
    apply_waivers(report.waivers, verdict);
    report.verdicts.push_back(std::move(verdict));
  }
  return before;
}

// Opens a new run.jsonl, or that of an interrupted run. Returns the report so far.
RunReport open_record(const RunRequest& request, const RunSetup& setup, const RunChoice& choice,
                      RunRecordWriter& record) {
  fs::create_directories(request.out);
  const fs::path file = request.out / "run.jsonl";
  RunReport report;
  if (const fs::path found = record_of(request.out); request.resume && has_run_head(found)) {
    const RunRecord before = resumed_record(found, setup, choice, report);
    if (found != file) uncompress_record(request.out);
    record.append_to(file, before);
    remove_reports(request.out);
  } else {
    report = report_from(setup.head, setup.fixtures);
    start_reports(request.out);
    record.create(file, setup.head);
  }
  return report;
}

struct Tasks {
  std::vector<Task> correctness, latency;
};

Tasks tasks_left(const RunSetup& setup, const RunChoice& choice, const RunReport& report) {
  std::set<std::string> judged;
  for (const Verdict& verdict : report.verdicts) judged.insert(verdict.full_id());
  Tasks tasks;
  for (const Candidate& candidate : choice.chosen) {
    if (judged.contains(candidate.name.full_id)) continue;
    const Case& c = choice.candidates.case_of(candidate);
    const bool timed = c.id.kind == Kind::latency;
    const double timeout_s = setup.plan.case_timeout_s +
                             (timed ? kLatencyTimeouts * choice.latency_budget_s * budget_share(c) : 0);
    (timed ? tasks.latency : tasks.correctness)
        .push_back({candidate.slot, candidate.name, case_key(c, candidate.name.variant).dump(), timeout_s});
  }
  return tasks;
}

}  // namespace

RunReport judge_cases(const RunRequest& request, RunSetup& setup, const RunChoice& choice, Progress& progress,
                      Interruption& interruption) {
  RunRecordWriter record;
  RunReport report = open_record(request, setup, choice, record);
  const Tasks tasks = tasks_left(setup, choice, report);
  progress.start(tasks.correctness.size() + tasks.latency.size());
  const auto judge_with = [&](const std::vector<Task>& some, unsigned jobs) {
    judge_tasks(
        setup.slots, some, jobs,
        [&](Verdict verdict) {
          record.add(verdict);
          apply_waivers(report.waivers, verdict);
          progress.saw(blocks_conformance(verdict, request.gate_latency));
          report.verdicts.push_back(std::move(verdict));
          return !interruption.happened();
        },
        [&](const std::vector<std::string>& in_flight) {
          progress.wait(in_flight);
          return !interruption.happened();
        });
  };
  const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
  judge_with(tasks.correctness, request.jobs != 0 ? request.jobs : std::min(kMaxJobs, cpus));
  if (!interruption.happened() && !tasks.latency.empty()) {
    // One worker at a time, so that nothing else runs during a measurement.
    for (ProviderSlot& slot : setup.slots) {
      slot.idle.reset();
      slot.options.settings.latency_budget_s = choice.latency_budget_s;
    }
    judge_with(tasks.latency, 1);
  }
  if (interruption.happened())
    throw RunError(Outcome::infrastructure, "interrupted after " + std::to_string(report.verdicts.size()) +
                                                " of " + std::to_string(choice.chosen.size()) + " cases; " +
                                                (request.out / "run.jsonl").string() +
                                                " has their verdicts; continue with --resume");
  for (const ProviderSlot& slot : setup.slots) report.host_round_trips += slot.round_trips;
  record.close();
  return report;
}

}  // namespace qcts
