// SPDX-License-Identifier: BSD-3-Clause
// Two of every four k are stored (kernels/dequantize/fp8_sparse24_scalar.cc). The other two are zeros, which
// are multiplied as well, because 0 * Inf is NaN.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct Sparse24Source {
  const qcts_problem& p;
  const uint8_t *codes, *metadata;
  const void* scales;
  explicit Sparse24Source(const qcts_problem& problem)
      : p(problem),
        codes(static_cast<const uint8_t*>(qcts::in_plane(problem, "qdata"))),
        metadata(static_cast<const uint8_t*>(qcts::in_plane(problem, "sparse_metadata"))),
        scales(qcts::in_plane(problem, "scale")) {}
  int64_t group() const { return p.k; }
  double code(int64_t n, int64_t k) const {
    const int64_t chunk = k / 4, place = k % 4;
    const int pair = metadata[n * (p.k / 8) + chunk / 2], places = chunk % 2 == 0 ? pair & 15 : pair >> 4;
    if (places == 0) return 0;
    const uint8_t* stored = codes + n * (p.k / 2) + 2 * chunk;
    if (place == places >> 2) return e4m3fn_to_f32(stored[1]);
    return place == (places & 3) ? e4m3fn_to_f32(stored[0]) : 0;
  }
  double scale(int64_t n, int64_t) const { return load(QCTS_F32, scales, n); }
  double zero(int64_t, int64_t) const { return 0; }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_fp8_sparse24_scalar =
    linear_of<qcts_kernel_linear_fp8_sparse24_scalar, Sparse24Source>("fp8_sparse24");
