// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/machine/thread_pool.h"

#include <immintrin.h>

#include <algorithm>

namespace qcts {
namespace {

// About 50 us of pauses: longer than the gap between two kernels of a decode step, shorter than any time
// slice.
constexpr int kSpins = 2000;
constexpr uint32_t kMaxThreads = 256;

// A body that calls run() again must not wait for the pool that runs it.
thread_local bool inside_run = false;

void run_range(ThreadPool::Body body, void* context, int64_t count, int64_t chunk, uint32_t part) {
  const int64_t first = std::min(count, chunk * part);
  const int64_t last = std::min(count, first + chunk);
  if (first < last) body(context, first, last);
}

}  // namespace

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool;
  return pool;
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(sleep_);
    stop_.store(true);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::grow(uint32_t workers) {
  const uint64_t seen = ticket_.load();
  while (workers_.size() < workers) {
    const auto index = static_cast<uint32_t>(workers_.size()) + 1;
    workers_.emplace_back([this, index, seen] { work(index, seen); });
  }
}

uint64_t ThreadPool::wait_for_job(int spins, uint64_t seen) {
  for (int spin = 0; spin < spins; ++spin) {
    const uint64_t now = ticket_.load(std::memory_order_acquire);
    if (now != seen || stop_.load(std::memory_order_relaxed)) return now;
    _mm_pause();
  }
  std::unique_lock<std::mutex> lock(sleep_);
  wake_.wait(lock, [&] { return ticket_.load(std::memory_order_acquire) != seen || stop_.load(); });
  return ticket_.load(std::memory_order_acquire);
}

void ThreadPool::work(uint32_t index, uint64_t seen) {
  inside_run = true;
  // Beyond the machine's processors a spinning worker takes the time of those that have a part. The number of
  // processors is read from a file, so it is asked for once.
  const int spins = index < std::thread::hardware_concurrency() ? kSpins : 0;
  while (!stop_.load()) {
    const uint64_t now = wait_for_job(spins, seen);
    if (now == seen) continue;
    seen = now;
    // Only workers that have a part may look at job_, because the caller waits only for them.
    if (index >= now % kMaxThreads) continue;
    run_range(job_.body, job_.context, job_.count, job_.chunk, index);
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void ThreadPool::run(uint32_t threads, int64_t count, int64_t grain, Body body, void* context) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t grains = (count + grain - 1) / grain;
  const auto parts =
      static_cast<uint32_t>(std::clamp<int64_t>(std::min<int64_t>(threads, grains), 1, kMaxThreads - 1));
  const int64_t chunk = (grains + parts - 1) / parts * grain;

  std::unique_lock<std::mutex> busy(busy_, std::defer_lock);
  if (parts == 1 || inside_run || !busy.try_lock()) {
    for (uint32_t part = 0; part < parts; ++part) run_range(body, context, count, chunk, part);
    return;
  }
  inside_run = true;
  grow(parts - 1);
  job_ = {body, context, count, chunk};
  pending_.store(parts - 1, std::memory_order_relaxed);
  {
    std::lock_guard<std::mutex> lock(sleep_);
    const uint64_t turn = ticket_.load() / kMaxThreads + 1;
    ticket_.store(turn * kMaxThreads + parts, std::memory_order_release);
  }
  wake_.notify_all();
  run_range(body, context, count, chunk, 0);
  for (int spin = 0; pending_.load(std::memory_order_acquire) != 0; ++spin) {
    if (spin < kSpins) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }
  inside_run = false;
}

}  // namespace qcts
