// SPDX-License-Identifier: BSD-3-Clause
// Compute roof of a roofline: loops of independent multiply-adds on registers measure the peak of the
// arithmetic units. They run beside a kernel, so that both see the same clock.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace qcts {

enum class Arithmetic : uint8_t { float32, bfloat16, int16, int8, int8_by_int4 };

struct PeakLoop {
  const char* name;     // "fma_avx2"
  const char* variant;  // whose features it needs, named like a kernel's variant
  Arithmetic arithmetic;
  uint64_t operations;          // in one iteration; a multiplication and an addition are two
  void (*run)(uint64_t turns);  // in the calling thread
};

// The loops that this machine runs, fastest kind first, by instruction set: at most one for each arithmetic,
// none newer than `variant` (for "avx2" no avx512 loop). If `variant` is not one of ours but a plug-in's, it
// may use everything the machine has. "scalar" has no loop.
std::vector<const PeakLoop*> peak_loops(std::string_view variant);

}  // namespace qcts
