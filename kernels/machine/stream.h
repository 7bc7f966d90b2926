// SPDX-License-Identifier: BSD-3-Clause
// Memory roof of a roofline: plain reads and copies of consecutive cache lines measure what memory gives one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qcts {

inline constexpr size_t kLineBytes = 64;

struct StreamLoop {
  const char* name;
  // Reads every byte of `lines` lines from `first` on once, in the calling thread. Returns a sum, so that no
  // read is optimized away.
  uint64_t (*read)(const std::byte* first, size_t lines);
};

// Which loop is the fastest depends on the machine: one core's hardware prefetcher follows one stream and
// stops at 4 KiB boundaries, another's follows four better than any software prefetch (EPYC Zen 3: 23.1
// against 16.0 GB/s).
std::span<const StreamLoop> stream_loops();

struct CopyLoop {
  const char* name;
  void (*copy)(std::byte* to, const std::byte* from, size_t lines);  // `to` begins at a cache line
  void (*fill)(std::byte* to, size_t lines);
};

// Copies through the caches, or past them, as for a result larger than the caches, whose lines need not be
// fetched before they are written. Another thread may see streamed lines late, so the result is not for
// another thread.
std::span<const CopyLoop> copy_loops();

}  // namespace qcts
