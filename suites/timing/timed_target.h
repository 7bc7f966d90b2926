// SPDX-License-Identifier: BSD-3-Clause
// Anything whose calls are timed: a kernel, a block of layers, or a roof of the machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "suites/providers/host_process.h"

namespace qcts {

class TimedTarget {
 public:
  virtual ~TimedTarget() = default;
  virtual void call(size_t copy) = 0;  // requires copy < copies()
  virtual size_t copies() const = 0;
  // Returns microseconds per call: the mean of `calls` calls, by this process's clock.
  // The calls use copy `first` and, if `rotate`, the copies after it. Requires calls <= max_calls().
  virtual double time_us(size_t first, size_t calls, bool rotate);
  // Makes an untimed call, or arranges for the next time_us() to begin with one.
  virtual void wake(size_t copy) { time_us(copy, 1, false); }
  virtual size_t max_calls(bool /*rotate*/) const { return SIZE_MAX; }
  // Returns what is timed: the same for targets whose samples must have the same number of calls.
  virtual const void* timed() const { return this; }
  // Returns the length of the shortest sample that hides the cost of asking for it.
  virtual double min_sample_us() const { return 20; }
  // Returns the length of a sample where time is not short.
  virtual double good_sample_us() const { return min_sample_us(); }
  // Returns the CPU seconds that the process of the calls has used.
  virtual double cpu_seconds() const;
  // Returns the sums over all calls of time_us(); zero if the target times itself.
  const BatchTime& spent() const { return spent_; }

 protected:
  BatchTime spent_;
};

// Returns the number of copies of `bytes` that exceed the caches twofold, as far as `max_bytes` suffices if
// each copy takes `held_bytes` of memory, and at least 1.
// The number is odd, so that a series that alternates timed and untimed calls times all copies.
// With an even number, two series timed different halves, and one pack kernel differed from itself by 10 %.
// Assumes 64 MiB if l3_bytes is 0.
size_t cold_copies(uint64_t bytes, uint64_t held_bytes, uint64_t l3_bytes, uint64_t max_bytes);
// Returns a quarter of the available memory, at most 1 GiB.
uint64_t copy_budget_bytes();

}  // namespace qcts
