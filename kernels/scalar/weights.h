// SPDX-License-Identifier: BSD-3-Clause
// Weights of one byte per element, for the scalar variants of weight-only `linear` (kernels/scalar/linear.h):
// int8 and float8, with scales for rows, the tensor, groups of a row or blocks.
#pragma once

#include "kernels/scalar/linear.h"

namespace qcts::scalar {
namespace {

// group() returns how many elements along k of a row share a scale.
// index() returns the index of the scale of element k.
struct OfRow {
  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t index(const qcts_problem&, int64_t n, int64_t) { return n; }
};
struct OfTensor {
  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t index(const qcts_problem&, int64_t, int64_t) { return 0; }
};
struct OfGroup {
  static int64_t group(const qcts_problem& p) { return p.group; }
  static int64_t index(const qcts_problem& p, int64_t n, int64_t k) {
    return n * (p.k / p.group) + k / p.group;
  }
};

// For int8: each product of x and a 9-bit integer is exact in double, so only the additions round.
template <class Scales>
struct Int8Source {
  const qcts_problem& p;
  const int8_t *codes, *zero_points;
  const void* scales;
  explicit Int8Source(const qcts_problem& problem)
      : p(problem),
        codes(static_cast<const int8_t*>(in_plane(problem, "qdata"))),
        zero_points(static_cast<const int8_t*>(in_plane(problem, "zero_point"))),
        scales(in_plane(problem, "scale")) {}
  int64_t group() const { return Scales::group(p); }
  double code(int64_t n, int64_t k) const { return codes[n * p.k + k] - zero_points[Scales::index(p, n, k)]; }
  double scale(int64_t n, int64_t g) const {
    return load(QCTS_F32, scales, Scales::index(p, n, g * group()));
  }
  double zero(int64_t, int64_t) const { return 0; }
};

// For fp8_row: codes are e4m3.
struct Fp8RowSource {
  const qcts_problem& p;
  const uint8_t* codes;
  const void* scales;
  explicit Fp8RowSource(const qcts_problem& problem)
      : p(problem),
        codes(static_cast<const uint8_t*>(in_plane(problem, "qdata"))),
        scales(in_plane(problem, "scale")) {}
  int64_t group() const { return p.k; }
  double code(int64_t n, int64_t k) const { return e4m3fn_to_f32(codes[n * p.k + k]); }
  double scale(int64_t n, int64_t) const { return load(QCTS_F32, scales, n); }
  double zero(int64_t, int64_t) const { return 0; }
};

// For fp8: codes are e4m3 or e5m2. A scale serves some rows or all rows, and a group along k or all of k.
struct Fp8Source : Fp8RowSource {
  bool e5m2;
  int64_t rows;
  explicit Fp8Source(const qcts_problem& problem)
      : Fp8RowSource(problem),
        e5m2(scheme_params(p).element_dtype == QCTS_F8_E5M2),
        rows(scheme_params(p).group_rows != 0 ? scheme_params(p).group_rows : p.n) {}
  int64_t group() const { return p.group != 0 ? p.group : p.k; }
  double code(int64_t n, int64_t k) const {
    return e5m2 ? e5m2_to_f32(codes[n * p.k + k]) : Fp8RowSource::code(n, k);
  }
  double scale(int64_t n, int64_t g) const { return load(QCTS_F32, scales, n / rows * (p.k / group()) + g); }
};

}  // namespace
}  // namespace qcts::scalar
