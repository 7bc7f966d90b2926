// SPDX-License-Identifier: BSD-3-Clause
// Codes 0 .. 15, the even k in the low nibble; each group has a row of scales and a row of integer zero
// points.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct Int32Source {
  const qcts_problem& p;
  const uint8_t* pairs;
  const int8_t* zero_points;
  const void* scales;
  explicit Int32Source(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        zero_points(static_cast<const int8_t*>(qcts::in_plane(problem, "zero_point"))),
        scales(qcts::in_plane(problem, "scale")) {}
  int64_t group() const { return p.group; }
  double code(int64_t n, int64_t k) const {
    const uint8_t pair = pairs[(n * p.k + k) / 2];
    return (k % 2 == 0 ? pair & 15 : pair >> 4) - zero_points[k / p.group * p.n + n];
  }
  double scale(int64_t n, int64_t g) const { return load(p.w_dtype, scales, g * p.n + n); }
  double zero(int64_t, int64_t) const { return 0; }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_int32_scalar =
    linear_of<qcts_kernel_linear_int4_int32_scalar, Int32Source>("int4_int32");
