// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/progress.h"

#include <cstdio>
#include <iostream>
#include <utility>

#include <unistd.h>

namespace qcts {
namespace {

constexpr std::chrono::milliseconds kTerminalPause{100};
constexpr std::chrono::minutes kLogPause{1};
constexpr const char* kStartOfLine = "\r\033[K";
const std::string kRedInk = "\033[31m", kInkOff = "\033[0m";

std::string time_left(const ProgressState& state) {
  const size_t done_now = state.done - state.done_before;
  if (done_now == 0 || state.done >= state.total || state.elapsed_s < 1) return "";
  const double share = static_cast<double>(state.total - state.done) / static_cast<double>(done_now);
  return clock_text(state.elapsed_s * share);
}

}  // namespace

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(seconds < 0 ? 0 : seconds);
  char text[48];
  if (whole < 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  return text;
}

std::string progress_line(const ProgressState& state, size_t columns) {
  std::string line = "[" + std::to_string(state.done) + "/" + std::to_string(state.total) + "]";
  if (state.failures != 0) line += " " + std::to_string(state.failures) + " failed";
  line += "  " + clock_text(state.elapsed_s);
  if (const std::string left = time_left(state); !left.empty()) line += ", about " + left + " left";
  constexpr size_t kShortestCase = 20;
  if (!state.current.empty() && line.size() + 2 + kShortestCase <= columns)
    line += "  " + clipped_to(state.current, columns - line.size() - 2);
  return clipped_to(line, columns);
}

Progress::Progress(Options options) : options_(std::move(options)), began_(options_.now()), last_(began_) {}

Progress::Options Progress::on_standard_error(bool enabled) {
  return {.enabled = enabled, .out = &std::cerr, .screen = [] { return screen_of(STDERR_FILENO); }};
}

Progress::~Progress() { clear(); }

void Progress::say(const std::string& what) {
  if (!options_.enabled) return;
  const Screen screen = options_.screen();
  if (!screen.terminal) return;
  *options_.out << kStartOfLine << clipped_to(what + " ...", screen.columns - 1) << std::flush;
  drawn_ = true;
}

void Progress::start(size_t total, size_t done) {
  state_.total = total;
  state_.done = state_.done_before = done;
  began_ = last_ = options_.now();
}

void Progress::saw(bool is_failure) {
  ++state_.done;
  state_.failures += is_failure;
  draw();
}

void Progress::note(const std::string& line) {
  const Screen screen = options_.screen();
  if (!options_.enabled || (!screen.terminal && options_.now() - began_ < kLogPause)) return;
  clear();
  *options_.out << (screen.terminal ? clipped_to(line, screen.columns - 1) : line) << std::endl;
}

void Progress::wait(const std::vector<std::string>& in_flight) {
  state_.current = in_flight.empty() ? "" : in_flight.front();
  draw();
}

void Progress::draw() {
  if (!options_.enabled) return;
  const Clock::time_point now = options_.now();
  if (now - last_ < kTerminalPause) return;
  const Screen screen = options_.screen();
  if (!screen.terminal && now - last_ < kLogPause) return;
  last_ = now;
  state_.elapsed_s = std::chrono::duration<double>(now - began_).count();
  const std::string line = progress_line(state_, screen.columns - 1);
  if (screen.terminal)
    *options_.out << kStartOfLine << (screen.colour && state_.failures != 0 ? kRedInk + line + kInkOff : line)
                  << std::flush;
  else
    *options_.out << line << std::endl;
  drawn_ = screen.terminal;
}

void Progress::clear() {
  if (drawn_) *options_.out << kStartOfLine << std::flush;
  drawn_ = false;
}

}  // namespace qcts
