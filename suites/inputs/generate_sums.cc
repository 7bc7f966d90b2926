// SPDX-License-Identifier: BSD-3-Clause
// Weights and rows of x whose sums are hard to compute accurately.
#include <cmath>

#include "reference/numerics/noise.h"
#include "suites/inputs/generate_parts.h"

namespace qcts {

void cancelling(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  const int64_t half = shape.k / 2;
  Floats w(shape.dtype, shape.n, shape.k), x(shape.dtype, synthetic.m, shape.k);
  for (int64_t r = 0; r < shape.n; ++r)
    for (int64_t c = 0; c < shape.k; ++c)
      w.at(r, c) =
          std::fabs(noise(seed, static_cast<uint64_t>(r * shape.k + c % std::max<int64_t>(half, 1))));
  for (int64_t i = 0; i < synthetic.m; ++i) {
    for (int64_t c = 0; c < half; ++c) {
      x.at(i, c) = 2048 + 512 * noise(seed + 1, static_cast<uint64_t>(i * shape.k + c)) / 4;
      x.at(i, half + c) = -x.at(i, c);
    }
    if (shape.k % 2 == 1) x.at(i, shape.k - 1) = 1;
  }
  input.planes = quantized(scheme, shape, w.bytes());
  input.x = x.bytes();
}

void one_sign(const Scheme& scheme, const Synthetic& synthetic, KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  const int64_t group = group_length(scheme, shape);
  Floats w(shape.dtype, shape.n, shape.k), x(shape.dtype, synthetic.m, shape.k);
  for (int64_t r = 0; r < shape.n; ++r)
    for (int64_t c = 0; c < shape.k; ++c) w.at(r, c) = (c % group == 0) == (r % 2 == 0) ? -1 : 1;
  // 127 in the upper byte of 16 bits, and the maximum of a byte.
  for (int64_t i = 0; i < synthetic.m; ++i)
    for (int64_t c = 0; c < shape.k; ++c)
      x.at(i, c) = std::ldexp(i % 2 == 0 ? 127.0 : -127.0, static_cast<int>(i) - 6);
  input.planes = quantized(scheme, shape, w.bytes());
  input.x = x.bytes();
}

}  // namespace qcts
