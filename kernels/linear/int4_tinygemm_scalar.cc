// SPDX-License-Identifier: BSD-3-Clause
// (code - 8) * scale + zero, the even k in the high nibble; scale and zero are adjacent.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct TinygemmSource {
  const qcts_problem& p;
  const uint8_t* pairs;
  const void* scale_and_zero;
  explicit TinygemmSource(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        scale_and_zero(qcts::in_plane(problem, "scale_and_zero")) {}
  int64_t group() const { return p.group; }
  double code(int64_t n, int64_t k) const {
    const uint8_t pair = pairs[(n * p.k + k) / 2];
    return (k % 2 == 0 ? pair >> 4 : pair & 15) - 8;
  }
  double scale(int64_t n, int64_t g) const { return load(p.w_dtype, scale_and_zero, 2 * (g * p.n + n)); }
  double zero(int64_t n, int64_t g) const { return load(p.w_dtype, scale_and_zero, 2 * (g * p.n + n) + 1); }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_tinygemm_scalar =
    linear_of<qcts_kernel_linear_int4_tinygemm_scalar, TinygemmSource>("int4_tinygemm");
