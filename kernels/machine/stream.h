// What memory gives one thread at most: plain reads of consecutive lines. The memory roof of a roofline.
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

}  // namespace qcts
