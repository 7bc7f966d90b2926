// SPDX-License-Identifier: BSD-3-Clause
// The file's table of 16 values, and a scaler per 64 elements of the flattened weight, which is computed
// from two levels with steps rounded to the weight's dtype. The even element has the high nibble.
#include "kernels/scalar/linear.h"

namespace {

using namespace qcts::scalar;

struct Nf4Source {
  const qcts_problem& p;
  const uint8_t* pairs;
  const int8_t* scalers;
  const void *factors, *table;
  float mean;
  explicit Nf4Source(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(qcts::in_plane(problem, "quantized_data"))),
        scalers(static_cast<const int8_t*>(qcts::in_plane(problem, "quantized_scalers"))),
        factors(qcts::in_plane(problem, "quantization_factor")),
        table(qcts::in_plane(problem, "nf4")),
        mean(load(problem.w_dtype, qcts::in_plane(problem, "scaler_mean"), 0)) {}
  int64_t group() const { return 64; }
  double code(int64_t n, int64_t k) const {
    const uint8_t pair = pairs[(n * p.k + k) / 2];
    return load(p.w_dtype, table, k % 2 == 0 ? pair >> 4 : pair & 15);
  }
  double scale(int64_t n, int64_t g) const {
    const int64_t block = n * (p.k / 64) + g;
    const float centred = static_cast<float>(scalers[block]) / load(p.w_dtype, factors, block / 256);
    return round_to(p.w_dtype, round_to(p.w_dtype, centred) + mean);
  }
  double zero(int64_t, int64_t) const { return 0; }
};

qcts_status nf4_supports(const qcts_problem* p, char* why, size_t why_size) {
  const qcts_status status = qcts::check_problem(qcts_kernel_linear_nf4_scalar, p, why, why_size);
  if (status == QCTS_OK && p->k % 64 != 0)
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size,
                        "k = %lld: linear needs blocks of 64 that do not cross rows",
                        static_cast<long long>(p->k));
  return status;
}

constexpr qcts_kernel nf4_kernel() {
  qcts_kernel entry = linear_of<qcts_kernel_linear_nf4_scalar, Nf4Source>("nf4");
  entry.supports = nf4_supports;
  return entry;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_nf4_scalar = nf4_kernel();
