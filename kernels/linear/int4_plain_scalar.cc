// SPDX-License-Identifier: BSD-3-Clause
// Signed codes, the even k in the low nibble; each group has a row of scales and a row of zeros.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct PlainSource {
  const qcts_problem& p;
  const uint8_t* pairs;
  const void *scales, *zeros;
  explicit PlainSource(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        scales(qcts::in_plane(problem, "scale")),
        zeros(qcts::in_plane(problem, "zero_point")) {}
  int64_t group() const { return p.group; }
  double code(int64_t n, int64_t k) const {
    const uint8_t pair = pairs[(n * p.k + k) / 2];
    const int nibble = k % 2 == 0 ? pair & 15 : pair >> 4;
    return nibble >= 8 ? nibble - 16 : nibble;
  }
  double scale(int64_t n, int64_t g) const { return load(p.w_dtype, scales, g * p.n + n); }
  double zero(int64_t n, int64_t g) const { return load(p.w_dtype, zeros, g * p.n + n); }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_plain_scalar =
    linear_of<qcts_kernel_linear_int4_plain_scalar, PlainSource>("int4_plain");
