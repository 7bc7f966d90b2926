// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace qcts {

// How a thread reads a weight fastest that it passes over once, in order.
enum class WeightReading : uint8_t {
  // One stream, of which the program asks memory for what comes next: without that an Emerald Rapids core
  // read 4-bit weights at 2/3 of the pace. EPYC Zen 5, m = 1 and 4, one thread: 4 bits 2 times as fast as
  // followed, int8 1.1 to 1.4 times; as four streams the same with AVX-512, with AVX2 0.6 to 1 times.
  prefetched,
  // One stream, left to the core's own prefetchers. EPYC Zen 4, m = 1, one thread: int8 1.06 to 1.2 times as
  // fast as prefetched, 4 bits in groups of 32 1.1 to 1.5 times; as four streams 0.65 to 0.85 times.
  followed,
  // Four streams in turn, where the kernel can (kernels/avx2/streams.h). EPYC Zen 3, m = 1, one thread: int8
  // 1.39 times as fast as one stream prefetched.
  side_by_side,
};
// This machine's (weight_reading_of, kernels/machine/machine.h). QCTS_WEIGHT_READING=prefetched, followed or
// side_by_side in the environment decides instead (not for the emulated provider, which always reads side by
// side): answers are the same. Of another value machine() throws std::runtime_error.
WeightReading weight_reading();

}  // namespace qcts
