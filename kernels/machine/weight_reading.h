// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace qcts {

// The fastest way for a thread to read a weight once, in order.
enum class WeightReading : uint8_t {
  // One stream with software prefetches.
  // Without them, an Emerald Rapids core read 4-bit weights at 2/3 of the speed.
  // On one thread of an EPYC Zen 5 at m = 1 and 4, 4-bit weights are read 2 times as fast as with `followed`,
  // and int8 weights 1.1 to 1.4 times as fast.
  // Four streams are as fast with AVX-512, and 0.6 to 1 times as fast with AVX2.
  prefetched,
  // One stream without software prefetches, for the hardware prefetchers.
  // On one thread of an EPYC Zen 4 at m = 1, int8 weights are read 1.06 to 1.2 times as fast
  // as with `prefetched`, and 4-bit weights in groups of 32 are read 1.1 to 1.5 times as fast.
  // Four streams are 0.65 to 0.85 times as fast.
  followed,
  // Four streams in turn, if the kernel supports them (kernels/avx2/streams.h).
  // On one thread of an EPYC Zen 3 at m = 1,
  // int8 weights are read 1.39 times as fast as with one prefetched stream.
  side_by_side,
};
// Returns the fastest way for this machine (weight_reading_of, kernels/machine/machine.h).
// The environment variable QCTS_WEIGHT_READING (prefetched, followed or side_by_side) overrides it.
// The emulated provider ignores the variable and always reads side by side.
// The choice does not change results. For any other value, machine() throws std::runtime_error.
WeightReading weight_reading();

}  // namespace qcts
