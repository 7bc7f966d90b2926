// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/probes.h"

#include <algorithm>
#include <vector>

#include "kernels/machine/thread_pool.h"
#include "suites/timing/stats.h"

namespace qcts {
namespace {

constexpr size_t kProbeTrials = 7;  // runs of each loop before the fastest is kept

uint64_t lines_of(uint64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

}  // namespace

StreamProbe::StreamProbe(const StreamRequest& request)
    : read_lines_(lines_of(request.read_bytes)),
      write_lines_(lines_of(request.write_bytes)),
      copies_(request.copies),
      threads_(request.threads),
      writes_rotate_(request.writes_rotate),
      read_(read_lines_ * kLineBytes * copies_),
      write_(write_lines_ * kLineBytes * (writes_rotate_ ? copies_ : 1)),
      read_loop_(&stream_loops().front()),
      copy_loop_(&copy_loops().front()) {
  keep_fastest(stream_loops(), read_loop_);
  if (writes_rotate_) keep_fastest(copy_loops(), copy_loop_);
}

// The loops alternate, each call on the next copy: a loop that ran on the previous loop's copies would find
// them in a cache.
template <class Loop>
void StreamProbe::keep_fastest(std::span<const Loop> loops, const Loop*& used) {
  std::vector<std::vector<double>> us(loops.size());
  size_t copy = 0;
  for (size_t trial = 0; trial < kProbeTrials; ++trial)
    for (size_t i = 0; i < loops.size(); ++i) {
      used = &loops[i];
      us[i].push_back(time_us(copy++ % copies_, 1, true));
    }
  size_t fastest = 0;
  for (size_t i = 0; i < loops.size(); ++i)
    if (median(us[i]) < median(us[fastest])) fastest = i;
  used = &loops[fastest];
}

void StreamProbe::call(size_t copy) {
  const std::byte* from = read_.data() + copy * read_lines_ * kLineBytes;
  std::byte* to = write_.data() + (writes_rotate_ ? copy : 0) * write_lines_ * kLineBytes;
  const size_t copied_lines = std::min(read_lines_, write_lines_);
  copy_lines(from, to, copied_lines);
  read_rest(from + copied_lines * kLineBytes, read_lines_ - copied_lines);
  fill_rest(to + copied_lines * kLineBytes, write_lines_ - copied_lines);
}

void StreamProbe::copy_lines(const std::byte* from, std::byte* to, size_t lines) {
  struct Share {
    const std::byte* from;
    std::byte* to;
    const CopyLoop& loop;
  } share{from, to, *copy_loop_};
  const auto copy = [](void* context, int64_t first, int64_t last) {
    const Share& all = *static_cast<const Share*>(context);
    const size_t byte = static_cast<size_t>(first) * kLineBytes;
    all.loop.copy(all.to + byte, all.from + byte, static_cast<size_t>(last - first));
  };
  ThreadPool::shared().run(threads_, static_cast<int64_t>(lines), 64, copy, &share);
}

void StreamProbe::read_rest(const std::byte* from, size_t lines) {
  struct Share {
    const std::byte* lines;
    const StreamLoop& loop;
    std::atomic<uint64_t>& sum;
  } share{from, *read_loop_, sum_};
  const auto read = [](void* context, int64_t first, int64_t last) {
    const Share& all = *static_cast<const Share*>(context);
    all.sum.fetch_add(all.loop.read(all.lines + first * kLineBytes, static_cast<size_t>(last - first)),
                      std::memory_order_relaxed);
  };
  ThreadPool::shared().run(threads_, static_cast<int64_t>(lines), 64, read, &share);
}

void StreamProbe::fill_rest(std::byte* to, size_t lines) {
  struct Share {
    std::byte* to;
    const CopyLoop& loop;
  } share{to, *copy_loop_};
  const auto fill = [](void* context, int64_t first, int64_t last) {
    const Share& all = *static_cast<const Share*>(context);
    all.loop.fill(all.to + first * kLineBytes, static_cast<size_t>(last - first));
  };
  ThreadPool::shared().run(threads_, static_cast<int64_t>(lines), 64, fill, &share);
}

PeakProbe::PeakProbe(const PeakLoop& loop, uint64_t operations, uint32_t threads)
    : loop_(loop), threads_(threads), turns_(operations / (loop.operations * threads) + 1) {}

void PeakProbe::call(size_t) {
  const auto share = [](void* context, int64_t, int64_t) {
    const PeakProbe& probe = *static_cast<const PeakProbe*>(context);
    probe.loop_.run(probe.turns_);
  };
  ThreadPool::shared().run(threads_, threads_, 1, share, this);
}

}  // namespace qcts
