// SPDX-License-Identifier: BSD-3-Clause
// Both of TinyQ's layers. Zero points of W8A32 are ignored, as its forward ignores them.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct TinyqSource {
  const qcts_problem& p;
  const int8_t* codes;
  const void* scales;
  explicit TinyqSource(const qcts_problem& problem)
      : p(problem),
        codes(static_cast<const int8_t*>(qcts::in_plane(problem, "int8_weights"))),
        scales(qcts::in_plane(problem, "scales")) {}
  int64_t group() const { return p.k; }
  double code(int64_t n, int64_t k) const { return codes[n * p.k + k]; }
  double scale(int64_t n, int64_t) const { return load(p.w_dtype, scales, n); }
  double zero(int64_t, int64_t) const { return 0; }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_tinyq_scalar =
    linear_of<qcts_kernel_linear_tinyq_scalar, TinyqSource>("tinyq");
