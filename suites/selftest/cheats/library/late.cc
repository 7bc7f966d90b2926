// SPDX-License-Identifier: BSD-3-Clause
// Cheats that go on after their return, in a thread or in a child, use more threads than they may, or write
// where they may only read.
#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suites/selftest/cheats/library/kernel.h"

namespace qcts::cheats {
namespace {

constexpr unsigned kLateUs = 20'000;

// A problem whose description outlives the call. The data it points to do not.
struct KeptProblem {
  qcts_problem problem;
  std::vector<qcts_plane> planes;
  explicit KeptProblem(const qcts_problem& given)
      : problem(given), planes(given.planes, given.planes + given.n_planes) {
    problem.planes = planes.data();
  }
};

qcts_status finish_later(const qcts_problem* problem) {
  std::thread([kept = KeptProblem(*problem)]() mutable {
    kept.problem.planes = kept.planes.data();  // the copy that the thread owns
    ::usleep(kLateUs);
    compute(&kept.problem);
  }).detach();
  return QCTS_OK;
}

// The answer is right until a thread changes it.
qcts_status change_later(const qcts_problem* problem) {
  const qcts_status status = compute(problem);
  std::thread([y = static_cast<volatile char*>(problem->y)] {
    ::usleep(kLateUs);
    *y = static_cast<char>(*y ^ 1);
  }).detach();
  return status;
}

// A child keeps the memory that was open when it was born.
template <class Work>
void leave_child(Work work) {
  if (::fork() != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::usleep(kLateUs);
  work();
  ::_exit(0);
}

qcts_status finish_in_child(const qcts_problem* problem) {
  leave_child([&] { compute(problem); });
  return QCTS_OK;
}

// The child counts up the last byte of the first element, which the bound of most answers hides.
qcts_status keep_child(const qcts_problem* problem) {
  const qcts_status status = compute(problem);
  leave_child(
      [y = static_cast<volatile unsigned char*>(problem->y)] {  // the description changes with the next call
        for (; ::getppid() != 1; ::usleep(1000)) *y = static_cast<unsigned char>(*y + 1);
      });
  return status;
}

// The child does nothing yet.
qcts_status wait_in_child(const qcts_problem* problem) {
  const qcts_status status = compute(problem);
  leave_child([] { ::pause(); });
  return status;
}

// Computes from changed weights and then puts them back.
qcts_status write_and_restore_input(const qcts_problem* problem) {
  auto* codes = const_cast<int8_t*>(codes_of(*problem));
  const int8_t first = codes[0];
  codes[0] = static_cast<int8_t>(first + 1);
  const qcts_status status = compute(problem);
  codes[0] = first;
  return status;
}

// Keeps more threads busy than the call allows, like a kernel that splits its work among all cores.
qcts_status spin_threads(const qcts_problem* problem) {
  std::atomic<bool> is_done = false;
  std::vector<std::thread> others;
  for (uint32_t i = 0; i <= problem->threads; ++i)
    others.emplace_back([&] {
      while (!is_done.load(std::memory_order_relaxed)) {
      }
    });
  const qcts_status status = compute(problem);
  is_done = true;
  for (std::thread& other : others) other.join();
  return status;
}

// The same with child processes, which do not show among the threads of its own process.
qcts_status spin_in_child(const qcts_problem* problem) {
  std::vector<pid_t> children;
  for (uint32_t i = 0; i <= problem->threads; ++i) {
    children.push_back(::fork());
    while (children.back() == 0) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  const qcts_status status = compute(problem);
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  return status;
}

constexpr Habit kLate[] = {
    {.name = "finishes_later", .run = finish_later},
    {.name = "changes_later", .run = change_later},
    {.name = "finishes_in_child", .run = finish_in_child},
    {.name = "keeps_child", .run = keep_child},
    {.name = "leaves_child", .run = wait_in_child},
    {.name = "writes_and_restores_input", .run = write_and_restore_input},
    {.name = "spins_threads", .run = spin_threads},
    {.name = "spins_in_child", .run = spin_in_child},
};

}  // namespace

HabitList late_habits() { return {kLate, std::size(kLate)}; }

}  // namespace qcts::cheats
