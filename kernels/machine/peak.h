// SPDX-License-Identifier: BSD-3-Clause
// What the arithmetic units can do at most: loops of independent multiply-adds on registers, run beside a
// kernel so that both see the clock of the moment. The compute roof of a roofline.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace qcts {

enum class Arithmetic : uint8_t { float32, bfloat16, int16, int8, int8_by_int4 };

struct PeakLoop {
  const char* name;     // "fma_avx2"
  const char* variant;  // the features that it needs, as a kernel's variant names them
  Arithmetic arithmetic;
  uint64_t operations;          // of one turn; a multiplication and an addition are two
  void (*run)(uint64_t turns);  // in the calling thread
};

// The fastest kind first that this machine runs, by instruction set: at most one loop for each arithmetic,
// none newer than `variant` ("avx2" knows no avx512 loop). A name that is no variant of ours, a plug-in's,
// may use whatever the machine has; "scalar" has no loop.
std::vector<const PeakLoop*> peak_loops(std::string_view variant);

}  // namespace qcts
