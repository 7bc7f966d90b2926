// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/words.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace qcts {
namespace {

uint32_t load(const uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

}  // namespace

void post(uint32_t& word, uint32_t value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool await(const uint32_t& word, uint32_t value, std::chrono::milliseconds limit,
           std::chrono::microseconds spin) {
  const auto start = std::chrono::steady_clock::now(), end = start + limit;
  // Linux adds a thread's time to its process's clock when the thread yields, so the clock is never late.
  while (load(word) != value && std::chrono::steady_clock::now() - start < spin) ::sched_yield();
  for (uint32_t seen = load(word); seen != value; seen = load(word)) {
    const std::chrono::nanoseconds left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    const timespec wait{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &wait, nullptr, 0);
  }
  return true;
}

}  // namespace qcts
