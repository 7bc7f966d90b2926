// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct Fp8RowSource {
  const qcts_problem& p;
  const uint8_t* codes;
  const void* scales;
  explicit Fp8RowSource(const qcts_problem& problem)
      : p(problem),
        codes(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        scales(qcts::in_plane(problem, "scale")) {}
  int64_t group() const { return p.k; }
  double code(int64_t n, int64_t k) const { return e4m3fn_to_f32(codes[n * p.k + k]); }
  double scale(int64_t n, int64_t) const { return load(QCTS_F32, scales, n); }
  double zero(int64_t, int64_t) const { return 0; }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_fp8_row_scalar =
    linear_of<qcts_kernel_linear_fp8_row_scalar, Fp8RowSource>("fp8_row");
