// SPDX-License-Identifier: BSD-3-Clause
// Compute limit of a roofline.
// Loops of independent multiply-adds on registers measure the peak of the arithmetic units.
// The loops alternate with a kernel, so that both run at the same clock.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace qcts {

enum class Arithmetic : uint8_t { float32, bfloat16, int16, int8, int8_by_int4 };

struct PeakLoop {
  const char* name;     // "fma_avx2"
  const char* variant;  // the variant whose features the loop needs
  Arithmetic arithmetic;
  uint64_t operations;          // number in one turn; a multiplication and an addition count as two
  void (*run)(uint64_t turns);  // runs in the calling thread
};

// Returns the loops that this machine runs, sorted by instruction set, fastest first.
// There is at most one loop for each arithmetic.
// No loop is newer than `variant`: for "avx2" there is no avx512 loop.
// If `variant` belongs to a plug-in, it may use all features of the machine. "scalar" has no loop.
std::vector<const PeakLoop*> peak_loops(std::string_view variant);

}  // namespace qcts
