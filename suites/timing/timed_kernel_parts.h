// SPDX-License-Identifier: BSD-3-Clause
// Parts that the two sources of TimedKernel share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace qcts {

inline constexpr std::byte kTimedPoison{0xFF};
inline constexpr size_t kPoolElements = size_t{1} << 18;  // of x, from which each call takes its own

inline double us_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace qcts
