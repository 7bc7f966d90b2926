// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace qcts {

// The fastest way for a thread to read a weight once, in order.
enum class WeightReading : uint8_t {
  // One stream, for which the program prefetches: without that an Emerald Rapids core read 4-bit weights at
  // 2/3 of the speed. EPYC Zen 5, m = 1 and 4, one thread: 4 bits 2 times as fast as followed, int8 1.1 to
  // 1.4 times; four streams are as fast with AVX-512, and 0.6 to 1 times as fast with AVX2.
  prefetched,
  // One stream, left to the hardware prefetchers. EPYC Zen 4, m = 1, one thread: int8 1.06 to 1.2 times as
  // fast as prefetched, 4 bits in groups of 32 1.1 to 1.5 times; four streams 0.65 to 0.85 times.
  followed,
  // Four streams in turn, if the kernel supports them (kernels/avx2/streams.h). EPYC Zen 3, m = 1, one
  // thread: int8 1.39 times as fast as one prefetched stream.
  side_by_side,
};
// The way that suits this machine (weight_reading_of, kernels/machine/machine.h).
// QCTS_WEIGHT_READING=prefetched, followed or side_by_side in the environment overrides it, except for the
// emulated provider, which always reads side by side; answers are the same. For any other value machine()
// throws std::runtime_error.
WeightReading weight_reading();

}  // namespace qcts
