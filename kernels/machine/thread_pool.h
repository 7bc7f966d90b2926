// SPDX-License-Identifier: BSD-3-Clause
// A fork-join pool for kernels.
// Work is divided statically, so results do not depend on which thread runs a part.
// Workers spin for a while before they sleep,
// so that the many small calls of a decode step need no system call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace qcts {

class ThreadPool {
 public:
  using Body = void (*)(void* context, int64_t first, int64_t last);

  ThreadPool() = default;
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Returns the pool of the process, the only resource that kernels share.
  // Threads start when they are first needed.
  static ThreadPool& shared();

  // Covers [0, count) with at most `threads` ranges.
  // The size of each range except the last is a multiple of `grain`.
  // The caller runs range 0 and worker i runs range i. Returns when all ranges are done.
  // If run() is called from inside a body, or while another caller holds the pool,
  // the caller runs every range. [thread-safe]
  void run(uint32_t threads, int64_t count, int64_t grain, Body body, void* context);

  uint32_t workers() const { return static_cast<uint32_t>(workers_.size()); }

 private:
  struct Job {
    Body body = nullptr;
    void* context = nullptr;
    int64_t count = 0, chunk = 0;
  };
  void work(uint32_t index, uint64_t seen);
  uint64_t wait_for_job(int spins, uint64_t seen);
  void grow(uint32_t workers);

  std::mutex busy_;  // held during a run
  std::vector<std::thread> workers_;
  Job job_;
  std::atomic<uint64_t> ticket_{0};  // 256 * turn + number of ranges in that turn's job
  std::atomic<uint32_t> pending_{0};
  std::atomic<bool> stop_{false};
  std::mutex sleep_;
  std::condition_variable wake_;
};

}  // namespace qcts
