// SPDX-License-Identifier: BSD-3-Clause
// Random inputs that are the same bits on every machine and in Python (fixtures/make/noise.py): exact integer
// noise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/formats/tensor.h"

namespace qcts {

// splitmix64 of seed + (index + 1) * 0x9E3779B97F4A7C15 (Steele, Lea, Flood 2014): the index-th output of the
// stream `seed`.
uint64_t splitmix64(uint64_t seed, uint64_t index);

// The four 16-bit parts of splitmix64(seed, index) summed, minus their mean 131070, times 2^-15: in [-4, 4),
// standard deviation about 1.15. Exact in double and in float.
double noise(uint64_t seed, uint64_t index);

// count elements, each noise(seed, i) * scale rounded to nearest even to dtype (float32, float16, bfloat16);
// little-endian. scale is a power of two.
std::vector<std::byte> noise_bytes(uint64_t seed, size_t count, DType dtype, double scale = 1.0);

}  // namespace qcts
