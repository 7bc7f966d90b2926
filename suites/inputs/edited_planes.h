// SPDX-License-Identifier: BSD-3-Clause
// Changes to a weight's planes after its recipe wrote them: codes, scales and zero points that it may never
// write.
#pragma once

#include <cstdint>

#include "suites/providers/kernel_run.h"

namespace qcts {

// Every byte value occurs at every position modulo 256, hence every code in every nibble and lane.
void plant_all_codes(const Scheme& scheme, const WeightShape& shape, Planes& planes, bool with_nan);

// An infinity times a zero of x is NaN, so rows that held every code would have no other answer: only the
// first keeps its infinities.
void drop_infinities(const WeightShape& shape, Plane& codes);

// A random mantissa in every wide scale: kernels that read it in a narrower type lose bits.
void scramble_scales(Planes& planes, uint64_t seed);

// Scales (and zero points) at the ends of their type: unchanged, subnormal, the smallest, near the largest
// that 128 codes allow; if there are more than eight, the last is NaN.
void stretch_scales(Planes& planes);

}  // namespace qcts
