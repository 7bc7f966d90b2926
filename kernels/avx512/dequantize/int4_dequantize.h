// SPDX-License-Identifier: BSD-3-Clause
// Converts rows of int4 groups to bfloat16, for the AVX-512 variants of dequantize.
// A group of 128 codes costs 25 operations, including 5 for its table.
// With vectors of half the width, it costs 58. kernels/avx2/dequantize/int4_dequantize.h does the rest.
#pragma once

#include "kernels/avx2/dequantize/int4_params.h"
#include "kernels/avx512/dequantize/nibbles.h"

namespace qcts::avx512 {
namespace {

template <class Params>
[[gnu::noinline]] void dequantize_odd_group(const Params& params, int64_t row, int64_t g, int64_t group,
                                            const uint8_t* codes, bool past_caches, char* to) {
  avx2::look_up_codes<Params::kHighFirst, false>(params.table(row, g), codes, group, to, past_caches);
}

struct WordLookups {
  template <class Params>
  static bool dequantize_row(const Params& params, int64_t row, int64_t groups, int64_t group,
                             int64_t row_bytes, const uint8_t* codes, bool past_caches, char* to) {
    if (group % 32 != 0) return false;
    const bool streams = past_caches && is_line(to);
    const __m512 meant = _mm512_add_ps(
        _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7),
        _mm512_mask_blend_ps(0xFF00, _mm512_set1_ps(Params::kLower), _mm512_set1_ps(Params::kUpper)));
    alignas(32) float scales[avx2::kLanes], zeros[avx2::kLanes];
    for (int64_t first = 0; first < groups; first += avx2::kLanes) {
      const avx2::EightGroups eight = params.eight(row, first);
      _mm256_store_ps(scales, eight.scale);
      _mm256_store_ps(zeros, eight.zero);
      const uint32_t plain = params.plain(eight);
      const int64_t count = groups - first < avx2::kLanes ? groups - first : avx2::kLanes;
      for (int64_t g = 0; g < count; ++g, codes += group / 2, to += 2 * group) {
        for (int64_t line = 0; line < group / 2; line += 64)
          _mm_prefetch(reinterpret_cast<const char*>(codes + row_bytes + line), _MM_HINT_T0);
        if ((plain >> g & 1) == 0) {
          dequantize_odd_group(params, row, first + g, group, codes, past_caches, to);
          continue;
        }
        const __m512 values = _mm512_fmadd_ps(meant, _mm512_set1_ps(scales[g]), _mm512_set1_ps(zeros[g]));
        look_up_words<Params::kHighFirst>(bf16_rounded(values), codes, group, streams, to);
      }
    }
    return true;
  }
};

}  // namespace
}  // namespace qcts::avx512
