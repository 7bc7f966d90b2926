// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/run_execution.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "reports/failure_title.h"
#include "suites/base/cgroup_limits.h"
#include "suites/cases/case_key.h"
#include "suites/run/budget.h"
#include "suites/run/run_report.h"
#include "suites/run/workers/supervisor.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

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
    throw UsageError(file.string() + " is from a different run and cannot be resumed: " + other);
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

std::string progress_of(const RunRecord& record) {
  return std::to_string(record.verdicts.size()) + " of " + std::to_string(record.head.cases) + " cases";
}

// Says on standard error where a resumed run goes on.
void say_resumed(const RunRequest& request, const RunRecord* before) {
  std::cerr << "qcts: "
            << (before ? "continues after " + progress_of(*before)
                       : "nothing to resume in " + request.out.string() + ": starts from the beginning")
            << std::endl;
}

// Opens a new run.jsonl, or that of an interrupted run. Returns the report so far.
RunReport open_record(const RunRequest& request, const RunSetup& setup, const RunChoice& choice,
                      RunRecordWriter& record) {
  fs::create_directories(request.out);
  const fs::path file = request.out / "run.jsonl";
  RunReport report;
  if (const fs::path found = record_of(request.out); request.resume && has_run_head(found)) {
    const RunRecord before = resumed_record(found, setup, choice, report);
    say_resumed(request, &before);
    if (found != file) uncompress_record(request.out);
    record.append_to(file, before);
    remove_reports(request.out);
  } else {
    if (request.resume) say_resumed(request, nullptr);
    report = report_from(setup.head, setup.fixtures);
    start_reports(request.out);
    if (request.restart && fs::exists(file)) fs::rename(file, request.out / "unfinished.jsonl");
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

// Takes the verdicts of a run: repeats are joined, the record and the report get them, and the first failure
// of each cause is reported at once.
class VerdictTaker {
 public:
  VerdictTaker(const RunRequest& request, RunRecordWriter& record, RunReport& report, Progress& progress)
      : request_(request), record_(record), report_(report), progress_(progress) {}

  void take(Verdict verdict) {
    if (request_.repeat > 1 && !is_last_repeat(verdict)) return;
    record_.add(verdict);
    apply_waivers(report_.waivers, verdict);
    const bool is_failure = blocks_conformance(verdict, request_.gate_latency);
    if (is_failure) say_new_cause(verdict);
    failures_ += is_failure;
    progress_.saw(is_failure);
    report_.verdicts.push_back(std::move(verdict));
  }

  bool is_stopped() const { return request_.fail_fast != 0 && failures_ >= request_.fail_fast; }

 private:
  struct Repeats {
    unsigned count = 0, number = 0;  // number: of the kept verdict
    Verdict kept;
  };

  // Keeps the first verdict other than a pass. After the last repeat, `verdict` becomes the kept one.
  bool is_last_repeat(Verdict& verdict) {
    Repeats& repeats = repeats_[verdict.full_id()];
    if (++repeats.count == 1 || repeats.kept.status == Status::pass) {
      repeats.number = repeats.count;
      repeats.kept = std::move(verdict);
    }
    if (repeats.count < request_.repeat) return false;
    verdict = std::move(repeats.kept);
    if (verdict.status != Status::pass)
      verdict.reason +=
          " (repeat " + std::to_string(repeats.number) + " of " + std::to_string(request_.repeat) + ")";
    repeats_.erase(verdict.full_id());
    return true;
  }

  void say_new_cause(const Verdict& verdict) {
    const std::string title = failure_title(verdict.reason);
    if (causes_.size() >= kCausesSaid || !causes_.insert(verdict.provider + " " + title).second) return;
    progress_.note(std::string(status_name(verdict.status)) + ": " + title + ": " + verdict.full_id());
  }

  static constexpr size_t kCausesSaid = 8;  // the summary has them all
  const RunRequest& request_;
  RunRecordWriter& record_;
  RunReport& report_;
  Progress& progress_;
  std::map<std::string, Repeats> repeats_;  // of cases that have repeats left
  std::set<std::string> causes_;
  size_t failures_ = 0;
};

// Returns the tasks, each as often as --repeat says.
std::vector<Task> repeated(std::vector<Task> tasks, unsigned times) {
  if (times == 1) return tasks;
  std::vector<Task> all;
  for (const Task& task : tasks) all.insert(all.end(), times, task);
  return all;
}

void judge_all(const RunRequest& request, RunSetup& setup, const RunChoice& choice, const Tasks& tasks,
               const OnVerdict& on_verdict, const OnWait& on_wait) {
  const unsigned jobs =
      request.jobs != 0 ? request.jobs : default_jobs(cgroup_limits(), std::thread::hardware_concurrency());
  judge_tasks(setup.slots, repeated(tasks.correctness, request.repeat), jobs, on_verdict, on_wait);
  if (tasks.latency.empty() || !on_wait({})) return;
  // One worker at a time, so that nothing else runs during a measurement.
  for (ProviderSlot& slot : setup.slots) {
    slot.idle.reset();
    slot.options.settings.latency_budget_s = choice.latency_budget_s;
  }
  judge_tasks(setup.slots, repeated(tasks.latency, request.repeat), 1, on_verdict, on_wait);
}

// Adds the files of code that each library's hosts have mapped to the provider's entry in record and report,
// in addition to those of an earlier part of the run. A peer's are left out.
void note_code(const fs::path& out, const RunSetup& setup, RunReport& report) {
  std::map<std::string, std::map<std::string, std::string>> code;  // by provider and path: the SHA-256
  for (const ProviderSlot& slot : setup.slots)
    if (slot.ready.error.empty() && !slot.ready.info.value("library", "").empty() &&
        !slot.ready.info.value("peer", false))
      for (const MappedInode& file : slot.mapped) {
        std::string& known = code[slot.ready.provider][file.first];
        const std::string sha256 = sha256_of(file);
        known = known.empty() || known == sha256 ? sha256 : "replaced during the run";
      }
  if (code.empty()) return;
  replace_head(out, [&](RunRecord& record) {
    for (nlohmann::ordered_json& provider : record.head.providers) {
      std::map<std::string, std::string>& files = code[provider.value("name", "")];
      for (const auto& file : provider.value("code", nlohmann::ordered_json::array()))
        files.emplace(file.at("path"), file.at("sha256"));
      if (files.empty()) continue;
      provider["code"] = nlohmann::ordered_json::array();
      for (const auto& [path, sha256] : files)
        provider["code"].push_back({{"path", path}, {"sha256", sha256}});
    }
    report.providers = record.head.providers;
  });
}

// Counts the chosen cases without a verdict.
LeftOut left_out(const RunChoice& choice, const RunReport& report) {
  std::set<std::string> judged;
  for (const Verdict& verdict : report.verdicts) judged.insert(verdict.full_id());
  LeftOut left;
  for (const Candidate& candidate : choice.chosen) {
    const CaseId& id = candidate.name.id;
    if (!judged.contains(candidate.name.full_id)) ++left[{id.kind, id.op}];
  }
  return left;
}

}  // namespace

void check_unfinished(const RunRequest& request) {
  const fs::path file = request.out / "run.jsonl";
  if (request.resume || request.restart || !has_run_head(file)) return;
  std::optional<RunRecord> before;
  try {
    before = read_run_record(file);
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string(error.what()) + "; --restart sets it aside");
  }
  if (!before->verdicts.empty())
    throw UsageError(request.out.string() + " has an unfinished run, of " + progress_of(*before) +
                     ": --resume continues it, --restart sets it aside");
}

RunReport judge_cases(const RunRequest& request, RunSetup& setup, const RunChoice& choice, Progress& progress,
                      Interruption& interruption) {
  RunRecordWriter record;
  RunReport report = open_record(request, setup, choice, record);
  Tasks tasks = tasks_left(setup, choice, report);
  const Budget budget(request.budget_s);
  if (budget.is_limited())
    for (std::vector<Task>* list : {&tasks.correctness, &tasks.latency}) sort_by_value(*list);
  const size_t before = report.verdicts.size();
  progress.start(before + tasks.correctness.size() + tasks.latency.size(), before);
  VerdictTaker taker(request, record, report, progress);
  const auto goes_on = [&] { return !interruption.happened() && !taker.is_stopped() && !budget.is_spent(); };
  judge_all(
      request, setup, choice, tasks,
      [&](Verdict verdict) {
        if (!taker.is_stopped()) taker.take(std::move(verdict));
        return goes_on();
      },
      [&](const std::vector<std::string>& in_flight) {
        progress.wait(in_flight);
        return goes_on();
      });
  const std::string judged =
      std::to_string(report.verdicts.size()) + " of " + std::to_string(choice.chosen.size()) + " cases";
  if (interruption.happened())
    throw RunError(Outcome::infrastructure, "interrupted after " + judged + "; " +
                                                (request.out / "run.jsonl").string() +
                                                " has their verdicts; continue with --resume");
  const bool is_cut = report.verdicts.size() < choice.chosen.size();
  if (is_cut && !budget.is_limited())
    report.stopped = "by --fail-fast after " + judged + "; --resume continues the run";
  for (const ProviderSlot& slot : setup.slots) report.host_round_trips += slot.round_trips;
  record.close();
  note_code(request.out, setup, report);
  if (is_cut && budget.is_limited()) {
    keep_what_was_judged(request.out, budget.text());
    report.selection.push_back(budget.text());
    report.left_out = left_out(choice, report);
  }
  return report;
}

}  // namespace qcts
