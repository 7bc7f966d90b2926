// SPDX-License-Identifier: BSD-3-Clause
// Weight-only `linear` for the scalar variants.
// y is the sum over groups of scale * sum(x * code) + zero * sum(x), plus bias.
// The code is written to be read. One dependent addition per element limits its speed.
// All sums are in double, where the products are exact.
#pragma once

#include <concepts>

#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace qcts::scalar {
namespace {

// A WeightSource returns the weight of a problem, element by element.
template <class T>
concept WeightSource =
    std::constructible_from<T, const qcts_problem&> && requires(const T& source, int64_t n, int64_t at) {
      { source.group() } -> std::convertible_to<int64_t>;      // elements along k that share a scale
      { source.code(n, at) } -> std::convertible_to<double>;   // code of element `at` of row n, as a number
      { source.scale(n, at) } -> std::convertible_to<double>;  // scale of group `at`
      { source.zero(n, at) } -> std::convertible_to<double>;
    };

template <WeightSource Source>
double dot(const qcts_problem& p, const Source& source, int64_t m, int64_t n) {
  const char* x = static_cast<const char*>(p.x) + m * p.ldx_bytes;
  double sum = 0;
  for (int64_t g = 0; g < p.k / source.group(); ++g) {
    double code_sum = 0, x_sum = 0;
    for (int64_t k = g * source.group(); k < (g + 1) * source.group(); ++k) {
      const double value = load(p.x_dtype, x, k);
      code_sum += value * source.code(n, k);
      x_sum += value;
    }
    sum += code_sum * source.scale(n, g);
    const double zero = source.zero(n, g);
    if (zero < 0 || zero > 0 || zero != zero) sum += x_sum * zero;
  }
  return sum;
}

template <WeightSource Source>
void linear_columns(const qcts_problem& p, int64_t first, int64_t last) {
  const Source source(p);
  for (int64_t m = 0; m < p.m; ++m) {
    char* y = static_cast<char*>(p.y) + m * p.ldy_bytes;
    for (int64_t n = first; n < last; ++n) {
      double sum = dot(p, source, m, n);
      if (p.bias != nullptr) sum += load(p.bias_dtype, p.bias, n);
      store_double(p.y_dtype, y, n, sum);
    }
  }
}

template <const qcts_kernel& kKernel, WeightSource Source>
constexpr qcts_kernel linear_of(const char* scheme) {
  qcts_kernel entry = exact_rows<kKernel, linear_columns<Source>>(
      QCTS_OP_LINEAR, scheme, "scalar",
      "a sum in double per output and group; bound by one dependent addition per element");
  entry.claims = QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_BATCH_INVARIANT;
  entry.numerics.struct_size = sizeof(qcts_numerics);
  entry.numerics.accumulator = QCTS_F64;
  entry.numerics.flags = QCTS_NUM_SCALE_AFTER_SUM;
  return entry;
}

}  // namespace
}  // namespace qcts::scalar
