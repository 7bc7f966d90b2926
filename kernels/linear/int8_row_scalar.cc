// SPDX-License-Identifier: BSD-3-Clause
// Each product of x with a 9-bit integer is exact in double, so only the additions round.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct Int8RowSource {
  const qcts_problem& p;
  const int8_t *codes, *zero_points;
  const void* scales;
  explicit Int8RowSource(const qcts_problem& problem)
      : p(problem),
        codes(static_cast<const int8_t*>(qcts::in_plane(problem, "qdata"))),
        zero_points(static_cast<const int8_t*>(qcts::in_plane(problem, "zero_point"))),
        scales(qcts::in_plane(problem, "scale")) {}
  int64_t group() const { return p.k; }
  double code(int64_t n, int64_t k) const { return codes[n * p.k + k] - zero_points[n]; }
  double scale(int64_t n, int64_t) const { return load(QCTS_F32, scales, n); }
  double zero(int64_t, int64_t) const { return 0; }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_scalar =
    linear_of<qcts_kernel_linear_int8_row_scalar, Int8RowSource>("int8_row");
