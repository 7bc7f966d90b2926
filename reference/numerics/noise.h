// SPDX-License-Identifier: BSD-3-Clause
// Makes random inputs from exact integer noise.
// The inputs have the same bits on every machine and in Python (fixtures/make/shared/noise.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/formats/tensor.h"

namespace qcts {

// Returns output `index` of the splitmix64 stream `seed` (Steele, Lea, Flood 2014).
// The output is splitmix64 of seed + (index + 1) * 0x9E3779B97F4A7C15.
uint64_t splitmix64(uint64_t seed, uint64_t index);

// Returns (the sum of the four 16-bit parts of splitmix64(seed, index) - 131070) * 2^-15.
// The mean is 0, the range [-4, 4), and the standard deviation about 1.15.
// The value is exact in double and in float.
double noise(uint64_t seed, uint64_t index);

// Returns `count` elements noise(seed, i) * scale, rounded to nearest even to dtype, little-endian.
// dtype is float32, float16 or bfloat16. `scale` is a power of two.
std::vector<std::byte> noise_bytes(uint64_t seed, size_t count, DType dtype, double scale = 1.0);

}  // namespace qcts
