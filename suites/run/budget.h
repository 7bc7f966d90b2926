// SPDX-License-Identifier: BSD-3-Clause
// `qcts run --budget`: what a run with little time asks first, and what becomes of its record.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "suites/run/workers/worker_lane.h"

#include "suites/record/run_record.h"

namespace qcts {

// Sorts tasks so that a run that ends early has asked the most different questions. Each implementation gets
// one input of each family of inputs on each scheme before it gets a second; within such a round the order is
// mixed, and the same in every run.
void sort_by_value(std::vector<Task>& tasks);

class Budget {
 public:
  // No `seconds`: without a limit.
  explicit Budget(std::optional<double> seconds)
      : seconds_(seconds), began_(std::chrono::steady_clock::now()) {}
  bool is_limited() const { return seconds_.has_value(); }
  bool is_spent() const;
  std::string text() const;  // "--budget 7200"

 private:
  std::optional<double> seconds_;
  std::chrono::steady_clock::time_point began_;
};

// Turns the unfinished record in `out` into one of a complete run that asked no more than was judged.
// `words` joins its selection. Throws std::runtime_error.
void keep_what_was_judged(const std::filesystem::path& out, const std::string& words);

// Replaces the head of out/run.jsonl.
void replace_head(const std::filesystem::path& out, const std::function<void(RunRecord&)>& change);

}  // namespace qcts
