// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/workers/worker_lane.h"

#include <optional>
#include <utility>

#include "suites/base/memory.h"
#include "suites/cases/case_key.h"

namespace qcts {
namespace {

// Says what was asked, for which neither the kernel nor a file is needed.
void describe_question(const std::string& line, std::optional<uint64_t> seed, Verdict& verdict) {
  nlohmann::ordered_json key = nlohmann::ordered_json::parse(line);
  if (!key.contains("question") || needs_fixtures(key)) return;
  key.erase("variant");
  const Case c = case_of_key(key, {}, Registry());
  verdict.input_kind = input_kind_of_verdict(c);
  if (key.contains("seed")) seed = key["seed"].get<uint64_t>();
  verdict.problem = problem_of_verdict(c, seed);
}

}  // namespace

bool WorkerLane::refill() {
  if (!waiting_.empty()) return true;
  while (!queue_->empty() && (waiting_.empty() || queue_->front().name.id == waiting_.back().name.id)) {
    waiting_.push_back(std::move(queue_->front()));
    queue_->pop_front();
  }
  return !waiting_.empty();
}

bool WorkerLane::feed() {
  while (refill()) {
    task_ = std::move(waiting_.front());
    waiting_.pop_front();
    began_ = RunClock::now();
    if (slot_->timeouts >= kMaxTimeouts && !slot_->keep_going) {
      if (!finish_broken(Status::timeout, "not asked: " + slot_->ready.provider + " timed out " +
                                              std::to_string(kMaxTimeouts) +
                                              " times in a row (--keep-going continues)"))
        break;
      continue;
    }
    std::string error;
    if (!child_) child_ = take_worker(*slot_, error);
    deadline_ = in_seconds(task_->timeout_s);
    if (child_ && child_->send_line(task_->key)) return true;
    if (child_) error = "its worker stopped reading: " + (child_->kill(), child_->wait());
    if (!finish_broken(Status::crash, error)) break;
  }
  return false;
}

void WorkerLane::attend(bool readable) {
  const bool open = !readable || child_->read_available();
  if (const auto line = child_->next_line()) return take(*line);
  if (!open) return finish_dead();
  if (seconds_left() <= 0) finish_late();
}

void WorkerLane::retire() {
  if (child_ && !slot_->idle) slot_->idle = std::move(child_);
}

// Nonsense counts as the worker's fault.
void WorkerLane::take(const std::string& line) {
  std::optional<Verdict> verdict;
  bool spoilt = false;
  try {
    const nlohmann::ordered_json json = nlohmann::ordered_json::parse(line);
    if (json.contains(kHostFailedKey))
      return finish_dead(json[kHostFailedKey].get<std::string>(), json.at(kPeakResidentKey).get<uint64_t>());
    verdict = verdict_from_json(json);
    spoilt = json.contains(kSpoiltKey);
    slot_->round_trips += json.value(kRoundTripsKey, uint64_t{0});
    for (const MappedInode& file : json.value(kMappedKey, std::vector<MappedInode>()))
      slot_->mapped.insert(file);
  } catch (const std::exception& error) {
    finish_broken(Status::crash,
                  std::string("its worker wrote a line that is not a verdict: ") + error.what());
    return;
  }
  if (verdict->full_id() != task_->name.full_id) {
    finish_broken(Status::crash, "its worker answered for a different case: " + verdict->full_id());
    return;
  }
  // By the worker's own clock, so that a busy parent causes no timeouts.
  if (verdict->wall_us > task_->timeout_s * 1e6) return finish_late();
  if (spoilt) child_.reset();
  finish(std::move(*verdict));
}

bool WorkerLane::finish(Verdict verdict) {
  if (verdict.status != Status::timeout) slot_->timeouts = 0;
  task_.reset();
  return (*on_verdict_)(std::move(verdict));
}

bool WorkerLane::finish_broken(Status status, const std::string& reason) {
  child_.reset();
  Verdict verdict;
  verdict.case_id = task_->name.id;
  verdict.provider = slot_->ready.provider;
  verdict.variant = task_->name.variant;
  verdict.status = status;
  verdict.reason = reason;
  describe_question(task_->key, told_seed(slot_->options.settings), verdict);
  if (!verdict.problem.empty()) verdict.reason += " (" + verdict.problem + ")";
  verdict.rerun = rerun_line(slot_->options.settings, task_->name.full_id);
  verdict.wall_us = std::chrono::duration<double, std::micro>(RunClock::now() - began_).count();
  return finish(std::move(verdict));
}

void WorkerLane::finish_late() {
  ++slot_->timeouts;
  finish_broken(Status::timeout, "no verdict within " + seconds_text(task_->timeout_s));
}

void WorkerLane::finish_dead() {
  const std::string how = "its worker died: " + child_->wait();
  finish_dead(how, child_->peak_resident_bytes());
}

void WorkerLane::finish_dead(const std::string& how, uint64_t peak_resident_bytes) {
  std::string ending = with_log(with_last_words(how, child_->log()), *slot_, child_->log());
  const uint64_t limit_bytes = slot_->options.memory_limit_bytes;
  const bool full = kMemoryCounts && limit_bytes != 0 && peak_resident_bytes > limit_bytes / 10 * 9;
  if (full) ending = "reached the memory limit of " + mib_text(limit_bytes) + ": " + ending;
  finish_broken(full ? Status::resource : Status::crash, ending);
}

}  // namespace qcts
