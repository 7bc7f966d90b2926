// SPDX-License-Identifier: BSD-3-Clause
// Entries of `linear` with 256-bit vectors.
// If x has 16 bits, it is multiplied in fixed point (kernels/fixed/linear.h).
// float32 x has 24 bits and would need more than two fixed-point numbers.
// So it is multiplied as floats (kernels/avx2/linear.h).
// For int4, floats take as long as fixed point at m = 1, and 0.74 of the time at m = 16 (EPYC Zen 3).
#pragma once

#include "kernels/avx2/linear.h"
#include "kernels/fixed/linear.h"

namespace qcts::avx2 {
namespace {

// Fixed is a Scheme of kernels/fixed/linear.h. Floats is a Scheme of kernels/avx2/linear.h.
template <class Fixed, class Floats>
struct FixedPointOrF32 {
  static bool has_floats(const qcts_problem* p) { return p->x_dtype == QCTS_F32; }

  static uint64_t workspace(const qcts_problem* p) {
    return has_floats(p) ? workspace_bytes<Floats>(p) : fixed::workspace_bytes<Fixed>(p);
  }
  static uint64_t prepared(const qcts_problem* p) {
    return has_floats(p) ? prepared_bytes<Floats>(p) : fixed::prepared_bytes<Fixed>(p);
  }
  static void prepare(const qcts_problem* p, void* to) {
    has_floats(p) ? pack_weight<Floats>(p, to) : fixed::pack_weight<Fixed>(p, to);
  }
  static void run(const qcts_problem* p) {
    has_floats(p) ? run_linear<Floats>(p) : fixed::run_linear<Fixed>(p);
  }
};

template <const qcts_kernel& kKernel, class Fixed, class Floats>
constexpr qcts_kernel fixed_point_or_f32_of(const char* scheme, const char* variant,
                                            const char* description) {
  using Entry = FixedPointOrF32<Fixed, Floats>;
  return linear_entry(scheme, variant, description, QCTS_F32,
                      {supports_problem<kKernel>, run_checked<kKernel, Entry::run>, Entry::workspace,
                       Entry::prepared, prepare_checked<kKernel, Entry::prepare>});
}

}  // namespace
}  // namespace qcts::avx2
