// SPDX-License-Identifier: BSD-3-Clause
// Encodes groups of int4_plain in bfloat16, sixteen elements at a time, for the AVX-512 variant of quantize.
// kernels/avx2/quantize/int4_plain_quantize.h does the rest.
//
// An even element and the odd element after it are in one lane and become one byte there.
// So nothing is reordered before the end. 64 elements take 30 operations.
// With vectors of half the width, they take 60.
// The 60 operations keep the multipliers busy for half of the time and are scheduled worse than their limit.
// With half as many operations, the codes take 0.86 of the time (EPYC Zen 4, groups of 128, in cache).
#pragma once

#include "kernels/avx2/quantize/int4_plain_quantize.h"
#include "kernels/avx512/elements.h"

namespace qcts::avx512 {
namespace {

using avx2::fetch_rows;
using avx2::PlainGroups;
using avx2::Way;

struct WidePlainScale {
  __m512 min, scale, reciprocal;
};

// Encodes 32 elements to one byte per lane. The even element is in the low nibble.
// Way::from_min gives codes plus 8, which are codes with the fourth bit flipped. Way::from_zero gives codes.
template <Way kWay>
[[gnu::always_inline]] inline __m512i pair_bytes(const char* at, const WidePlainScale& by) {
  const __m512i both = _mm512_loadu_si512(at);
  const __m512 w[2] = {
      _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)),
      _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))))};
  __m512i steps[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512 v = kWay == Way::from_zero ? w[i] : _mm512_sub_ps(w[i], by.min),
                 near = _mm512_mul_ps(v, by.reciprocal);
    steps[i] = _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_fnmadd_ps(near, by.scale, v), by.reciprocal, near));
    if (kWay == Way::from_zero) steps[i] = _mm512_min_epi32(steps[i], _mm512_set1_epi32(7));
  }
  const __m512i odd = _mm512_slli_epi32(steps[1], 4);
  if (kWay == Way::from_min)
    return _mm512_ternarylogic_epi32(steps[0], odd, _mm512_set1_epi32(0x88), 0x56);  // (a | b) ^ c
  const __m512i joined = _mm512_ternarylogic_epi32(_mm512_set1_epi32(15), steps[0], odd, 0xCA);  // a ? b : c
  return _mm512_and_si512(joined, _mm512_set1_epi32(255));
}

// Puts the bytes of two vectors of pair_bytes in order.
// If both are the same vector, the result has the bytes twice.
[[gnu::always_inline]] inline __m512i in_order(__m512i front, __m512i back) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(front, back));
}

template <Way kWay>
[[gnu::always_inline]] inline void quantize_wide_group(const char* at, int64_t row_bytes, int64_t count,
                                                       const WidePlainScale& by, uint8_t* out) {
  const auto sixty_four = [&](const char* from) {
    return _mm512_packus_epi32(pair_bytes<kWay>(from, by), pair_bytes<kWay>(from + 64, by));
  };
  int64_t i = 0;
  for (; i + 128 <= count; i += 128) {
    const char* from = at + 2 * i;
    fetch_rows<256>(from, row_bytes);
    _mm512_storeu_si512(out + i / 2, in_order(sixty_four(from), sixty_four(from + 128)));
  }
  if (i == count) return;
  fetch_rows<128>(at + 2 * i, row_bytes);
  const __m512i last = sixty_four(at + 2 * i);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i / 2), _mm512_castsi512_si256(in_order(last, last)));
}

// Quantizes the ordinary groups. Inlined here, whole groups of 128 take 0.88 of the time.
template <Way kWay>
void quantize_wide_groups(const char* at, int64_t row_bytes, int64_t group, const PlainGroups& groups,
                          uint8_t* out) {
  for (uint32_t left = groups.ordinary; left != 0; left &= left - 1) {
    const int g = __builtin_ctz(left);
    const WidePlainScale by = {_mm512_set1_ps(groups.min[g]), _mm512_set1_ps(groups.scale[g]),
                               _mm512_set1_ps(groups.reciprocal[g])};
    quantize_wide_group<kWay>(at + 2 * g * group, row_bytes, group, by, out + g * group / 2);
  }
}

struct WidePlainParts : avx2::RangesOfGroups {
  static uint32_t quantize_groups(const char* at, int64_t row_bytes, int64_t group, bool symmetric,
                                  const PlainGroups& groups, uint8_t* out) {
    if (group % 64 != 0) return 0;
    (symmetric ? quantize_wide_groups<Way::from_zero>
               : quantize_wide_groups<Way::from_min>)(at, row_bytes, group, groups, out);
    return groups.ordinary;
  }
};

}  // namespace
}  // namespace qcts::avx512
