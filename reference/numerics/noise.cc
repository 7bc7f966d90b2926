// SPDX-License-Identifier: BSD-3-Clause
#include "reference/numerics/noise.h"

#include "reference/numerics/soft_float.h"

namespace qcts {

uint64_t splitmix64(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double noise(uint64_t seed, uint64_t index) {
  const uint64_t bits = splitmix64(seed, index);
  int64_t sum = -131070;
  for (int part = 0; part < 4; ++part) sum += static_cast<int64_t>(bits >> (16 * part) & 0xFFFF);
  return static_cast<double>(sum) * 0x1p-15;
}

std::vector<std::byte> noise_bytes(uint64_t seed, size_t count, DType dtype, double scale) {
  std::vector<std::byte> bytes(count * dtype_bytes(dtype));
  for (size_t i = 0; i < count; ++i) store_float(dtype, bytes, i, noise(seed, i) * scale);
  return bytes;
}

}  // namespace qcts
