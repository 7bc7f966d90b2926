// SPDX-License-Identifier: BSD-3-Clause
// Memory limit of a roofline.
// Plain reads and copies of consecutive cache lines measure the memory bandwidth of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qcts {

inline constexpr size_t kLineBytes = 64;

struct StreamLoop {
  const char* name;
  // Reads `lines` cache lines once, starting at `first`, in the calling thread.
  // Returns a sum, so that the compiler keeps every read.
  uint64_t (*read)(const std::byte* first, size_t lines);
};

// The fastest loop depends on the machine.
// The hardware prefetcher of some cores follows one stream and stops at 4 KiB boundaries.
// On other cores, it follows four streams better than any software prefetch.
// (EPYC Zen 3 read 23.1 GB/s against 16.0 GB/s.)
std::span<const StreamLoop> stream_loops();

struct CopyLoop {
  const char* name;
  void (*copy)(std::byte* to, const std::byte* from, size_t lines);  // `to` begins at a cache line
  void (*fill)(std::byte* to, size_t lines);
};

// Loops that copy through the caches, or past them.
// Copying past the caches suits a result larger than the caches,
// because its lines need not be fetched before they are written.
// Another thread may see streamed lines late, so only the writing thread may read the result.
std::span<const CopyLoop> copy_loops();

}  // namespace qcts
