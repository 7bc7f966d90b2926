// SPDX-License-Identifier: BSD-3-Clause
// The summary and progress of a run on a terminal.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "reports/report.h"

namespace qcts {

// Returns at most a screen of text: verdict, counts, scheme x operation, sizes, latency, failures with their
// rerun lines, the reports' paths.
std::string summary_text(const RunReport& report, const std::string& out);

// Shows progress on standard error: one rewritten line on a terminal, a line every few seconds otherwise.
// Failures are shown at once.
class Progress {
 public:
  Progress(bool enabled, size_t total);
  ~Progress();
  void saw(const Verdict& verdict, bool is_failure);
  void wait(const std::vector<std::string>& in_flight);

 private:
  void draw(bool force);
  void clear();
  const bool enabled_, terminal_;
  const size_t total_;
  size_t done_ = 0, failures_ = 0;
  bool drawn_ = false;
  std::string current_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace qcts
