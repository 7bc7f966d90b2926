// SPDX-License-Identifier: BSD-3-Clause
// e2m1 elements, the even one in the low nibble; an e4m3 scale per 16 elements; at two levels also one scale
// for the whole weight.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct Nvfp4Source {
  const qcts_problem& p;
  const uint8_t *pairs, *scales;
  double whole;
  explicit Nvfp4Source(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        scales(static_cast<const uint8_t*>(qcts::in_plane(problem, "scale"))) {
    const void* given = qcts::in_plane(p, "per_tensor_scale");
    whole = given == nullptr ? 1 : load(QCTS_F32, given, 0);
  }
  int64_t group() const { return 16; }
  double code(int64_t n, int64_t k) const {
    const uint8_t pair = pairs[(n * p.k + k) / 2];
    return small_to_f32(k % 2 == 0 ? pair & 15u : pair >> 4, 2, 1);
  }
  double scale(int64_t n, int64_t g) const { return whole * e4m3fn_to_f32(scales[n * (p.k / 16) + g]); }
  double zero(int64_t, int64_t) const { return 0; }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_nvfp4_scalar =
    linear_of<qcts_kernel_linear_nvfp4_scalar, Nvfp4Source>("nvfp4");
