// SPDX-License-Identifier: BSD-3-Clause
// Probes that measure the machine next to a kernel. One probe only moves bytes, the other only multiplies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/machine/peak.h"
#include "kernels/machine/stream.h"
#include "suites/timing/big_buffer.h"
#include "suites/timing/timed_target.h"

namespace qcts {

struct StreamRequest {
  uint64_t read_bytes = 0, write_bytes = 0;  // bytes per copy
  size_t copies = 1;
  bool writes_rotate = false;  // true: each copy has its own output; false: all copies share one
  uint32_t threads = 1;
};

// Measures memory throughput for the bytes of a problem, on rotating copies and with `threads` threads.
// The bytes that are both read and written are copied. The rest is read or filled.
// The constructor picks the fastest of stream_loops() and copy_loops().
// Data that does not rotate stays in a cache and is copied through it.
class StreamProbe final : public TimedTarget {
 public:
  explicit StreamProbe(const StreamRequest& request);
  void call(size_t copy) override;
  size_t copies() const override { return copies_; }
  uint64_t sum() const { return sum_; }
  const StreamLoop& read_loop() const { return *read_loop_; }
  const CopyLoop& copy_loop() const { return *copy_loop_; }

 private:
  // Picks the fastest of equivalent loops, timed in this probe's own calls.
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

// Measures arithmetic throughput: at least `operations` operations, split evenly among `threads` threads.
class PeakProbe final : public TimedTarget {
 public:
  PeakProbe(const PeakLoop& loop, uint64_t operations, uint32_t threads);
  void call(size_t copy) override;
  size_t copies() const override { return 1; }
  const PeakLoop& loop() const { return loop_; }
  uint64_t operations() const { return turns_ * loop_.operations * threads_; }  // operations per call

 private:
  const PeakLoop& loop_;
  uint32_t threads_;
  uint64_t turns_;
};

}  // namespace qcts
