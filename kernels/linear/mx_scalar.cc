// SPDX-License-Identifier: BSD-3-Clause
// Elements of eight, six or four bits, with one e8m0 scale per 32 elements. Six-bit elements are in the low
// bits of a byte; of two four-bit ones the even one is in the low nibble.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct MxSource {
  const qcts_problem& p;
  const uint8_t *codes, *scales;
  bool pairs, e5m2, e2m3, e3m2;
  explicit MxSource(const qcts_problem& problem)
      : p(problem),
        codes(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        scales(static_cast<const uint8_t*>(qcts::in_plane(problem, "scale"))),
        pairs(is_element(QCTS_F4_E2M1_X2)),
        e5m2(is_element(QCTS_F8_E5M2)),
        e2m3(is_element(QCTS_F6_E2M3)),
        e3m2(is_element(QCTS_F6_E3M2)) {}
  bool is_element(uint32_t dtype) const { return qcts::scheme_params(p).element_dtype == dtype; }
  int64_t group() const { return 32; }
  double code(int64_t n, int64_t k) const {
    const int64_t index = n * p.k + k;
    if (pairs) return small_to_f32(k % 2 == 0 ? codes[index / 2] & 15u : codes[index / 2] >> 4, 2, 1);
    if (e2m3) return small_to_f32(codes[index], 2, 3);
    if (e3m2) return small_to_f32(codes[index], 3, 2);
    return e5m2 ? e5m2_to_f32(codes[index]) : e4m3fn_to_f32(codes[index]);
  }
  double scale(int64_t n, int64_t g) const { return e8m0_to_f32(scales[n * (p.k / 32) + g]); }
  double zero(int64_t, int64_t) const { return 0; }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_mx_scalar = linear_of<qcts_kernel_linear_mx_scalar, MxSource>("mx");
