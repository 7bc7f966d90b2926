// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes rows of float8 codes, for the AVX2 variants.
// A scale serves a row, a group, the tensor or a block of 128 x 128.
// The kernel reads one byte and writes two or four bytes per element. It rounds like kernels/scalar/float8.h.
#pragma once

#include "kernels/avx2/dequantize/dequantize_scaled.h"

namespace qcts::avx2 {
namespace {

// The AVX-512 variant replaces this step.
struct Float8Groups {
  template <Float8 kFormat>
  static void scale_groups(uint32_t dtype, const uint8_t* codes, int64_t groups, int64_t length,
                           const void* scales, bool past_caches, char* to) {
    scale_float_groups<kFormat>(dtype, codes, groups, length, scales, past_caches, to);
  }
};

template <class Groups>
void dequantize_float8(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(in_plane(p, "qdata"));
  const auto* scales = static_cast<const char*>(in_plane(p, "scale"));
  const qcts_scheme_params& params = scheme_params(p);
  const auto scale_groups = params.element_dtype == QCTS_F8_E5M2
                                ? Groups::template scale_groups<Float8::e5m2>
                                : Groups::template scale_groups<Float8::e4m3>;
  const int64_t rows = params.group_rows != 0 ? params.group_rows : p.n;
  const int64_t length = p.group != 0 ? p.group : p.k, groups = p.k / length;
  const bool past_caches = is_past_caches(p, length);
  for (int64_t n = first; n < last; ++n)
    scale_groups(p.w_dtype, codes + n * p.k, groups, length, scales + 4 * (n / rows * groups), past_caches,
                 static_cast<char*>(p.y) + n * p.ldy_bytes);
}

}  // namespace
}  // namespace qcts::avx2
