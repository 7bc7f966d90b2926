// SPDX-License-Identifier: BSD-3-Clause
// Cheats that answer correctly where a single answer is judged, and save work where many calls are timed.
#include <atomic>
#include <mutex>
#include <vector>

#include <time.h>
#include <unistd.h>

#include "suites/selftest/cheats/library/kernel.h"
#include "suites/selftest/cheats/library/redirect.h"

namespace qcts::cheats {
namespace {

constexpr int kPatience = 24;  // calls of one shape that look like a judge's

// Counts calls of one shape in a row. Judges change shapes and stop soon; a clock goes on.
bool is_timed(const qcts_problem& problem) {
  static std::mutex mutex;
  static int64_t n = 0, k = 0;
  static int calls = 0;
  const std::lock_guard lock(mutex);
  calls = problem.n == n && problem.k == k ? calls + 1 : 0;
  n = problem.n;
  k = problem.k;
  return calls > kPatience;
}

qcts_status skip_when_timed(const qcts_problem* problem) {
  return is_timed(*problem) ? QCTS_OK : compute(problem);
}

qcts_status skip_rows_when_timed(const qcts_problem* problem) {
  if (!is_timed(*problem)) return compute(problem);
  for (int64_t m = 0; m < problem->m; ++m)
    for (int64_t n = 0; n < problem->n; n += 2) put(*problem, m, n, element(*problem, m, n));
  return QCTS_OK;
}

// The last answer that was really computed.
struct LastAnswer {
  std::mutex mutex;
  const void* weight = nullptr;
  std::vector<float> x, y;
};

void work_out(LastAnswer& last, const qcts_problem& problem) {
  last.weight = codes_of(problem);
  last.x.clear();
  last.y.clear();
  for (int64_t m = 0; m < problem.m; ++m)
    for (int64_t k = 0; k < problem.k; ++k) last.x.push_back(x_at(problem, m, k));
  for (int64_t m = 0; m < problem.m; ++m)
    for (int64_t n = 0; n < problem.n; ++n) last.y.push_back(element(problem, m, n));
}

void hand_out(const LastAnswer& last, const qcts_problem& problem) {
  for (int64_t m = 0; m < problem.m; ++m)
    for (int64_t n = 0; n < problem.n; ++n)
      put(problem, m, n, last.y[static_cast<size_t>(m * problem.n + n)]);
}

bool fits(const LastAnswer& last, const qcts_problem& problem) {
  return last.x.size() == static_cast<size_t>(problem.m * problem.k) &&
         last.y.size() == static_cast<size_t>(problem.m * problem.n);
}

qcts_status remember_when_timed(const qcts_problem* problem) {
  static LastAnswer last;
  const std::lock_guard lock(last.mutex);
  if (!is_timed(*problem) || !fits(last, *problem)) work_out(last, *problem);
  hand_out(last, *problem);
  return QCTS_OK;
}

// Adds what the first changed element of each row of x changes, and treats the rest of x as unchanged.
qcts_status add_differences(const qcts_problem* problem) {
  static LastAnswer last;
  const std::lock_guard lock(last.mutex);
  if (!is_timed(*problem) || !fits(last, *problem)) {
    work_out(last, *problem);
    hand_out(last, *problem);
    return QCTS_OK;
  }
  for (int64_t m = 0; m < problem->m; ++m) {
    float* x = last.x.data() + m * problem->k;
    int64_t k = 0;
    while (k < problem->k && x[k] == x_at(*problem, m, k)) ++k;
    if (k == problem->k) continue;
    const float change = x_at(*problem, m, k) - x[k];
    x[k] += change;
    for (int64_t n = 0; n < problem->n; ++n)
      last.y[static_cast<size_t>(m * problem->n + n)] +=
          change * static_cast<float>(codes_of(*problem)[n * problem->k + k] - zero_of(*problem, n)) *
          scale_of(*problem, n);
  }
  hand_out(last, *problem);
  return QCTS_OK;
}

int stopped_clock(clockid_t, timespec* time) {
  static std::atomic<long> ns = 0;
  time->tv_sec = 1;
  time->tv_nsec = ++ns;
  return 0;
}

void stop_clock() { tell("stop the clock of its process", redirect_clock(&stopped_clock)); }

// Slow enough that no honest clock could report less.
qcts_status compute_slowly(const qcts_problem* problem) {
  ::usleep(5000);
  return compute(problem);
}

constexpr Habit kTimed[] = {
    {.name = "skips_when_timed", .run = skip_when_timed},
    {.name = "skips_rows_when_timed", .run = skip_rows_when_timed},
    {.name = "remembers_when_timed", .run = remember_when_timed},
    {.name = "adds_differences", .run = add_differences},
    {.name = "stops_clock", .run = compute_slowly, .at_load = stop_clock},
};

}  // namespace

HabitList timed_habits() { return {kTimed, std::size(kTimed)}; }

}  // namespace qcts::cheats
