// SPDX-License-Identifier: BSD-3-Clause
// Tests that over the shapes of the plans every kind of buffer is tried.
#include "suites/providers/buffer_trials.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace qcts {
namespace {

KernelInput linear_of(int64_t m, int64_t n, int64_t k) {
  KernelInput input;
  input.op = Op::linear;
  input.m = m;
  input.weight = {DType::bfloat16, n, k};
  return input;
}

TEST(BufferTrials, SmallShapesMeetEveryKindOfBuffer) {
  std::set<size_t> offsets;
  std::set<uint32_t> threads;
  std::set<Misaligned> misaligned;
  bool wide = false, starts = false;
  for (int64_t m = 1; m < 18; ++m) {
    const KernelInput input = linear_of(m, 37, 216);
    offsets.insert(irregular_buffers(input, 1).front().misalign_elems);
    const RunOptions many = many_threads(input, 1).front();
    threads.insert(many.threads);
    misaligned.insert(many.misaligned);
    wide = wide || many.gap_elems * 2 > 0xFFFF;
    for (const RunOptions& edge : at_edges(input, 1)) starts = starts || edge.flush == Flush::start;
    EXPECT_EQ(at_edges(input, 1).front().flush, Flush::end);
  }
  EXPECT_EQ(offsets.size(), 7u);
  EXPECT_EQ(threads, (std::set<uint32_t>{2, 3, 4, 8}));
  EXPECT_EQ(misaligned.size(), 2u);
  EXPECT_TRUE(wide && starts);
}

TEST(BufferTrials, LargeProblemsHaveThreadsAndNoWideGaps) {
  const KernelInput large = linear_of(64, 256, 4096);
  ASSERT_TRUE(is_large(large));
  EXPECT_EQ(irregular_buffers(large, 1).front().threads, kLargeThreads);
  for (int64_t m = 64; m < 68; ++m)
    EXPECT_LT(many_threads(linear_of(m, 256, 4096), 1).front().gap_elems, 100u);
}

TEST(BufferTrials, AreNamed) {
  EXPECT_EQ(described({8, 3, 16, true}, 1),
            "buffers 3 elements off alignment, gaps between rows, planes in reverse order, 8 threads");
  EXPECT_EQ(described({.threads = 1, .flush = Flush::end}, 1), "every buffer ends where memory ends");
}

}  // namespace
}  // namespace qcts
