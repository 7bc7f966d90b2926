// SPDX-License-Identifier: BSD-3-Clause
// What the stopwatch times beside a kernel: the machine's own pace, of one that only moves bytes and of one
// that only multiplies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/machine/peak.h"
#include "kernels/machine/stream.h"
#include "suites/timing/contender.h"

namespace qcts {

struct StreamRequest {
  uint64_t read_bytes = 0, write_bytes = 0;  // of one copy
  size_t copies = 1;
  bool writes_rotate = false;  // each copy writes elsewhere; otherwise all to one place
  uint32_t threads = 1;
};

// The machine's own pace with the bytes of a problem, on rotating copies and with `threads` threads: a plain
// copy of as many as are both read and written; what is left is read or filled. By the fastest of
// stream_loops() and copy_loops(), which the constructor finds out; what does not rotate is in a cache, and
// copied through it.
class StreamProbe final : public Contender {
 public:
  explicit StreamProbe(const StreamRequest& request);
  void call(size_t copy) override;
  size_t copies() const override { return copies_; }
  uint64_t sum() const { return sum_; }
  const StreamLoop& read_loop() const { return *read_loop_; }
  const CopyLoop& copy_loop() const { return *copy_loop_; }

 private:
  // Of loops that do the same, in this probe's own calls.
  template <class Loop>
  void keep_fastest(std::span<const Loop> loops, const Loop*& used);
  void copy_lines(const std::byte* from, std::byte* to, size_t lines);
  void read_rest(const std::byte* from, size_t lines);
  void fill_rest(std::byte* to, size_t lines);

  size_t read_lines_, write_lines_, copies_;
  uint32_t threads_;
  bool writes_rotate_;
  BigBuffer read_, write_;
  const StreamLoop* read_loop_;
  const CopyLoop* copy_loop_;
  std::atomic<uint64_t> sum_{0};
};

// The machine's own arithmetic: at least `operations` of them, `threads` threads with the same share each.
class PeakProbe final : public Contender {
 public:
  PeakProbe(const PeakLoop& loop, uint64_t operations, uint32_t threads);
  void call(size_t copy) override;
  size_t copies() const override { return 1; }
  const PeakLoop& loop() const { return loop_; }
  uint64_t operations() const { return turns_ * loop_.operations * threads_; }  // of one call

 private:
  const PeakLoop& loop_;
  uint32_t threads_;
  uint64_t turns_;
};

}  // namespace qcts
