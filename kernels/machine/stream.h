// SPDX-License-Identifier: BSD-3-Clause
// What memory gives one thread at most: plain reads and copies of consecutive lines. The memory roof of a
// roofline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qcts {

inline constexpr size_t kLineBytes = 64;

struct StreamLoop {
  const char* name;
  // Every byte of `lines` lines at `first` once, in the calling thread; a sum, so that nothing is left out.
  uint64_t (*read)(const std::byte* first, size_t lines);
};

// Which of them is the fastest only the machine knows: one core's hardware prefetcher follows one stream and
// stops at 4 KiB borders, another's follows four better than any software prefetch (EPYC Zen 3: 23.1 against
// 16.0 GB/s).
std::span<const StreamLoop> stream_loops();

struct CopyLoop {
  const char* name;
  void (*copy)(std::byte* to, const std::byte* from, size_t lines);  // to: at a line's begin
  void (*fill)(std::byte* to, size_t lines);
};

// Through the caches, or past them, as a result that is larger than they are: such lines need not be fetched
// before they are written. Streamed lines may be seen late by another thread: a copy here is for nobody.
std::span<const CopyLoop> copy_loops();

}  // namespace qcts
