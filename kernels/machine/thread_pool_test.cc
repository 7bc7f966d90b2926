// SPDX-License-Identifier: BSD-3-Clause
// The cut of the work decides which thread touches which bytes, and every claim of thread invariance depends
// on it. Ranges must be disjoint and complete, and depend only on the numbers, also when the pool is busy,
// nested or shared.
#include "kernels/machine/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <vector>

namespace qcts {
namespace {

struct Record {
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> ranges;
  std::set<std::thread::id> threads;
  static void body(void* context, int64_t first, int64_t last) {
    auto& record = *static_cast<Record*>(context);
    const std::lock_guard<std::mutex> lock(record.mutex);
    record.ranges.insert({first, last});
    record.threads.insert(std::this_thread::get_id());
  }
};

struct Cut {
  uint32_t threads;
  int64_t count, grain;
};
class ThreadPoolCuts : public testing::TestWithParam<Cut> {};

TEST_P(ThreadPoolCuts, DisjointCompleteAndOnGrains) {
  const auto [threads, count, grain] = GetParam();
  ThreadPool pool;
  Record record;
  pool.run(threads, count, grain, Record::body, &record);
  int64_t next = 0;
  for (const auto& [first, last] : record.ranges) {
    EXPECT_EQ(first, next);
    EXPECT_EQ(first % grain, 0);
    EXPECT_LT(first, last);
    next = last;
  }
  EXPECT_EQ(next, count);
  EXPECT_LE(record.ranges.size(), threads);
  EXPECT_LE(pool.workers() + 1, threads);

  Record again;
  pool.run(threads, count, grain, Record::body, &again);
  EXPECT_EQ(again.ranges, record.ranges);
}

INSTANTIATE_TEST_SUITE_P(ThreadPool, ThreadPoolCuts,
                         testing::Values(Cut{1, 10, 1}, Cut{3, 10, 1}, Cut{4, 3, 1}, Cut{2, 1, 64},
                                         Cut{4, 130, 64}, Cut{7, 1000, 16}, Cut{2, 64, 64}, Cut{16, 17, 1}));

TEST(ThreadPool, RangesRunAtTheSameTime) {
  ThreadPool pool;
  std::atomic<int> arrived{0};
  // Each range waits for the others, so this ends only if every range has a thread.
  pool.run(
      3, 3, 1,
      [](void* context, int64_t, int64_t) {
        auto& count = *static_cast<std::atomic<int>*>(context);
        ++count;
        while (count < 3) std::this_thread::yield();
      },
      &arrived);
  EXPECT_EQ(arrived, 3);
}

TEST(ThreadPool, NothingToDoCallsNobody) {
  ThreadPool pool;
  Record record;
  pool.run(4, 0, 1, Record::body, &record);
  EXPECT_TRUE(record.ranges.empty());
}

TEST(ThreadPool, ANestedCallRunsItsRangesInTheCaller) {
  ThreadPool pool;
  struct Nested {
    ThreadPool* pool;
    Record inner;
  } nested{&pool, {}};
  pool.run(
      2, 2, 1,
      [](void* context, int64_t first, int64_t) {
        auto& outer = *static_cast<Nested*>(context);
        if (first == 0) outer.pool->run(2, 10, 1, Record::body, &outer.inner);
      },
      &nested);
  EXPECT_EQ(nested.inner.ranges, (std::set<std::pair<int64_t, int64_t>>{{0, 5}, {5, 10}}));
  EXPECT_EQ(nested.inner.threads.size(), 1u);
}

// Sleeping workers wake up again, and a small job after a large one waits only for the workers that it uses.
TEST(ThreadPool, ManyJobsOfChangingSizeWithPauses) {
  ThreadPool pool;
  for (int round = 0; round < 300; ++round) {
    std::atomic<int64_t> sum{0};
    const uint32_t threads = 1 + static_cast<uint32_t>(round) % 4;
    pool.run(
        threads, 100, 1,
        [](void* context, int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) *static_cast<std::atomic<int64_t>*>(context) += i;
        },
        &sum);
    ASSERT_EQ(sum, 4950);
    if (round % 100 == 99) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(ThreadPool, CallersAtTheSameTimeEachGetAllTheirWork) {
  ThreadPool pool;
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        std::atomic<int64_t> done{0};
        pool.run(
            2, 64, 8,
            [](void* context, int64_t first, int64_t last) {
              *static_cast<std::atomic<int64_t>*>(context) += last - first;
            },
            &done);
        if (done != 64) ++wrong;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace qcts
