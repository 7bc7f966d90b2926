// SPDX-License-Identifier: BSD-3-Clause
// Signed codes, the even k in the low nibble. A code's product with its group's scale is rounded to e4m3
// (kernels/scalar/int4_e4m3.h), so what remains as a factor of the sum is the row's scale.
#include "kernels/scalar/int4_e4m3.h"
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct E4m3Source {
  const qcts_problem& p;
  const uint8_t *pairs, *scales;
  const void* row_scales;
  explicit E4m3Source(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        scales(static_cast<const uint8_t*>(qcts::in_plane(problem, "scale"))),
        row_scales(qcts::in_plane(problem, "row_scale")) {}
  int64_t group() const { return p.k; }
  double code(int64_t n, int64_t k) const {
    const uint8_t pair = pairs[(n * p.k + k) / 2];
    const int nibble = k % 2 == 0 ? pair & 15 : pair >> 4, code = nibble >= 8 ? nibble - 16 : nibble;
    return int4_e4m3_value(code, e4m3fn_to_f32(scales[k / p.group * p.n + n]));
  }
  double scale(int64_t n, int64_t) const { return load(QCTS_F32, row_scales, n); }
  double zero(int64_t, int64_t) const { return 0; }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_e4m3_scalar =
    linear_of<qcts_kernel_linear_int4_e4m3_scalar, E4m3Source>("int4_e4m3");
