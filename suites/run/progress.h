// SPDX-License-Identifier: BSD-3-Clause
// Shows the progress of a run on standard error.
// On a terminal, one line is rewritten, from the first moment on.
// Elsewhere, progress is one line per minute.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "suites/base/terminal.h"

namespace qcts {

struct ProgressState {
  size_t done = 0, total = 0, failures = 0;
  double elapsed_s = 0;
  std::string current;     // a case in flight; may be empty
  size_t done_before = 0;  // of `done`, by the run that this one continues
};
// Returns "[12/475] 3 failed  0:12, about 1:40 left  CASE" in at most `columns`.
// If the line is too long, the case is clipped or left out first.
std::string progress_line(const ProgressState& state, size_t columns);
// Formats a time as "0:07", "12:34" or "1:02:03".
std::string clock_text(double seconds);

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  // `screen` is called for every line, because a window may change its size.
  struct Options {
    bool enabled = true;
    std::ostream* out = nullptr;
    std::function<Screen()> screen;
    std::function<Clock::time_point()> now = Clock::now;
  };

  explicit Progress(Options options);
  static Options on_standard_error(bool enabled);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Reports a step before the first case: "starting 4 providers".
  void say(const std::string& what);
  // `done` of them were judged before.
  void start(size_t total, size_t done = 0);
  // Writes a line that stays; without a terminal, only in a run of more than a minute.
  void note(const std::string& line);
  void saw(bool is_failure);
  void wait(const std::vector<std::string>& in_flight);
  // Removes the line from a terminal, before other output.
  void clear();

 private:
  void draw();
  const Options options_;
  ProgressState state_;
  bool drawn_ = false;
  Clock::time_point began_, last_;
};

}  // namespace qcts
