// SPDX-License-Identifier: BSD-3-Clause
// Parts that the two sources of TimedKernel share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "kernels/machine/stream.h"

namespace qcts {

inline constexpr int kTimedPoison = 0xFF;
inline constexpr size_t kPoolElements = size_t{1} << 18;  // of x, from which each call takes its own

// Rounds up to whole cache lines.
inline uint64_t to_lines(uint64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

inline double us_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace qcts
