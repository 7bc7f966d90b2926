// SPDX-License-Identifier: BSD-3-Clause
// Every source of the emulated plug-in includes this file first.
// This file maps the names of intrinsics to functions of SIMDe.
// It also supplies conversions that SIMDe 0.7.4 lacks,
// and the dot products of bytes, which SIMDe computes byte by byte.
// These conversions and dot products work on one half of a vector at a time.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include "kernels/emulated/tiles.h"

namespace {

inline __m512i join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline __m256i low_half(__m512i a) { return _mm512_castsi512_si256(a); }
inline __m256i high_half(__m512i a) { return _mm512_extracti64x4_epi64(a, 1); }
inline __m512 join(__m256 low, __m256 high) {
  return _mm512_castsi512_ps(join(_mm256_castps_si256(low), _mm256_castps_si256(high)));
}

[[maybe_unused]] inline __m512i emulated_cvtepi8_epi32(__m128i a) {
  return join(_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8)));
}
[[maybe_unused]] inline __m512i emulated_cvtepu8_epi32(__m128i a) {
  return join(_mm256_cvtepu8_epi32(a), _mm256_cvtepu8_epi32(_mm_srli_si128(a, 8)));
}
[[maybe_unused]] inline __m512i emulated_cvtepu16_epi32(__m256i a) {
  return join(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)),
              _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1)));
}
// Keeps the low 16 bits of each lane.
[[maybe_unused]] inline __m256i emulated_cvtepi32_epi16(__m512i a) {
  const __m256i mask = _mm256_set1_epi32(0xFFFF);
  const __m256i packed =
      _mm256_packus_epi32(_mm256_and_si256(low_half(a), mask), _mm256_and_si256(high_half(a), mask));
  return _mm256_permute4x64_epi64(packed, 0xD8);
}
// Keeps the low 8 bits of each lane.
[[maybe_unused]] inline __m128i emulated_cvtepi32_epi8(__m512i a) {
  const __m256i words = _mm256_and_si256(emulated_cvtepi32_epi16(a), _mm256_set1_epi16(255));
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
[[maybe_unused]] inline __m512i emulated_cvtps_epi32(__m512 a) {
  const __m512i bits = _mm512_castps_si512(a);
  return join(_mm256_cvtps_epi32(_mm256_castsi256_ps(low_half(bits))),
              _mm256_cvtps_epi32(_mm256_castsi256_ps(high_half(bits))));
}
[[maybe_unused]] inline __m512 emulated_cvtepi32_ps(__m512i a) {
  return join(_mm256_cvtepi32_ps(low_half(a)), _mm256_cvtepi32_ps(high_half(a)));
}
[[maybe_unused]] inline __m512 emulated_cvtph_ps(__m256i a) {
  return join(_mm256_cvtph_ps(_mm256_castsi256_si128(a)), _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1)));
}
// Rounds to nearest even, the only rounding that the kernels request.
[[maybe_unused]] inline __m256i emulated_cvtps_ph(__m512 a) {
  const __m512i bits = _mm512_castps_si512(a);
  const __m128i low = _mm256_cvtps_ph(_mm256_castsi256_ps(low_half(bits)), _MM_FROUND_TO_NEAREST_INT);
  const __m128i high = _mm256_cvtps_ph(_mm256_castsi256_ps(high_half(bits)), _MM_FROUND_TO_NEAREST_INT);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
[[maybe_unused]] inline __m512d emulated_cvtps_pd(__m256 a) {
  const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                high = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
  return _mm512_castsi512_pd(join(_mm256_castpd_si256(low), _mm256_castpd_si256(high)));
}
[[maybe_unused]] inline __m256 emulated_cvtpd_ps(__m512d a) {
  const __m512i bits = _mm512_castpd_si512(a);
  const __m128 low = _mm256_cvtpd_ps(_mm256_castsi256_pd(low_half(bits)));
  const __m128 high = _mm256_cvtpd_ps(_mm256_castsi256_pd(high_half(bits)));
  return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}

[[maybe_unused]] inline __m512d emulated_cvtepi32_pd(__m256i a) {
  const __m256d low = _mm256_cvtepi32_pd(_mm256_castsi256_si128(a)),
                high = _mm256_cvtepi32_pd(_mm256_extracti128_si256(a, 1));
  return _mm512_castsi512_pd(join(_mm256_castpd_si256(low), _mm256_castpd_si256(high)));
}
// VPDPBUSD (SDM volume 2D) adds the sum of four products of unsigned a and signed b to a lane.
// A product has at most 17 bits, and nothing saturates.
// Even and odd bytes are taken as 16-bit numbers; the bytes of a are below 256.
[[maybe_unused]] inline __m256i emulated_dpbusd(__m256i sum, __m256i a, __m256i b) {
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(a, _mm256_set1_epi16(255)),
                                         _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
  return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}
[[maybe_unused]] inline __m512i emulated_dpbusd(__m512i sum, __m512i a, __m512i b) {
  return join(emulated_dpbusd(low_half(sum), low_half(a), low_half(b)),
              emulated_dpbusd(high_half(sum), high_half(a), high_half(b)));
}

// VPDPWSSD adds the sum of two products of 16-bit numbers to a lane, modulo 2^32.
[[maybe_unused]] inline __m256i emulated_dpwssd(__m256i sum, __m256i a, __m256i b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
[[maybe_unused]] inline __m512i emulated_dpwssd(__m512i sum, __m512i a, __m512i b) {
  return join(emulated_dpwssd(low_half(sum), low_half(a), low_half(b)),
              emulated_dpwssd(high_half(sum), high_half(a), high_half(b)));
}

// Replaces subnormals with zeros of the same sign.
[[maybe_unused]] inline __m256 emulated_flush(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i small =
      _mm256_cmpeq_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7F800000)), _mm256_setzero_si256());
  return _mm256_castsi256_ps(
      _mm256_andnot_si256(_mm256_and_si256(small, _mm256_set1_epi32(0x7FFFFFFF)), bits));
}
// VDPBF16PS (SDM volume 2C) first adds the product of the odd elements,
// then the product of the even elements. Subnormal inputs and results become zeros.
[[maybe_unused]] inline __m256 emulated_dpbf16(__m256 sum, __m256i a, __m256i b) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xFFFF0000u));
  const auto odd = [&](__m256i v) { return emulated_flush(_mm256_castsi256_ps(_mm256_and_si256(v, high))); };
  const auto even = [&](__m256i v) { return emulated_flush(_mm256_castsi256_ps(_mm256_slli_epi32(v, 16))); };
  sum = emulated_flush(_mm256_fmadd_ps(odd(a), odd(b), emulated_flush(sum)));
  return emulated_flush(_mm256_fmadd_ps(even(a), even(b), sum));
}
template <class Pairs>
[[maybe_unused]] inline __m512 emulated_dpbf16(__m512 sum, Pairs a, Pairs b) {
  const __m512i x = __builtin_bit_cast(__m512i, a), y = __builtin_bit_cast(__m512i, b),
                bits = _mm512_castps_si512(sum);
  return join(emulated_dpbf16(_mm256_castsi256_ps(low_half(bits)), low_half(x), low_half(y)),
              emulated_dpbf16(_mm256_castsi256_ps(high_half(bits)), high_half(x), high_half(y)));
}
[[maybe_unused]] inline __m512i emulated_cvtepi8_epi16(__m256i a) {
  return join(_mm256_cvtepi8_epi16(_mm256_castsi256_si128(a)),
              _mm256_cvtepi8_epi16(_mm256_extracti128_si256(a, 1)));
}
// Returns one bit for each 16-bit lane. All bits of a lane are set, or none.
[[maybe_unused]] inline uint32_t emulated_bits_epi16(__m256i low, __m256i high) {
  const __m256i bytes = _mm256_packs_epi16(low, high);
  return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(bytes, 0xD8)));
}
// Selects the lanes in which a and b have no bit in common.
[[maybe_unused]] inline uint32_t emulated_testn_epi16(__m512i a, __m512i b) {
  const __m256i none = _mm256_setzero_si256();
  return emulated_bits_epi16(_mm256_cmpeq_epi16(_mm256_and_si256(low_half(a), low_half(b)), none),
                             _mm256_cmpeq_epi16(_mm256_and_si256(high_half(a), high_half(b)), none));
}
[[maybe_unused]] inline uint32_t emulated_cmpeq_epi16(__m512i a, __m512i b) {
  return emulated_bits_epi16(_mm256_cmpeq_epi16(low_half(a), low_half(b)),
                             _mm256_cmpeq_epi16(high_half(a), high_half(b)));
}
[[maybe_unused]] inline uint32_t emulated_cmplt_epi16(__m512i a, __m512i b) {
  return emulated_bits_epi16(_mm256_cmpgt_epi16(low_half(b), low_half(a)),
                             _mm256_cmpgt_epi16(high_half(b), high_half(a)));
}
[[maybe_unused]] inline uint32_t emulated_cmpgt_epu16(__m512i a, __m512i b) {
  const auto above = [](__m256i x, __m256i y) {
    const __m256i none = _mm256_cmpeq_epi16(_mm256_subs_epu16(x, y), _mm256_setzero_si256());
    return _mm256_xor_si256(none, _mm256_set1_epi16(-1));
  };
  return emulated_bits_epi16(above(low_half(a), low_half(b)), above(high_half(a), high_half(b)));
}
// Takes lanes of `a` where the mask is set, and lanes of `source` elsewhere.
[[maybe_unused]] inline __m512i emulated_mask_epi16(__m512i source, uint32_t mask, __m512i a) {
  const auto half = [](__m256i from, uint32_t bits, __m256i x) {
    const __m256i lane =
        _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, INT16_MIN);
    const __m256i taken =
        _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(static_cast<int16_t>(bits)), lane), lane);
    return _mm256_blendv_epi8(from, x, taken);
  };
  return join(half(low_half(source), mask & 0xFFFF, low_half(a)),
              half(high_half(source), mask >> 16, high_half(a)));
}
[[maybe_unused]] inline __mmask16 emulated_testn_epi32(__m512i a, __m512i b) {
  const auto none = [](__m256i both) {
    return _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(both, _mm256_setzero_si256())));
  };
  const __m512i both = _mm512_and_si512(a, b);
  return static_cast<__mmask16>(none(low_half(both)) | none(high_half(both)) << 8);
}
// Adds with rounding towards +Inf and leaves no trace in the flags.
// The compiler assumes that every addition rounds to nearest.
// So it must not see that the additions are between the two changes of mode.
[[maybe_unused]] inline __m256 emulated_add_up(__m256 a, __m256 b) {
  const unsigned control = _mm_getcsr();
  _mm_setcsr((control & ~static_cast<unsigned>(_MM_ROUND_MASK)) | _MM_ROUND_UP);
  asm volatile("" : "+x"(a), "+x"(b));
  __m256 sum = _mm256_add_ps(a, b);
  asm volatile("" : "+x"(sum));
  _mm_setcsr(control);
  return sum;
}
[[maybe_unused]] inline __m512 emulated_add_up(__m512 a, __m512 b) {
  const __m512i x = _mm512_castps_si512(a), y = _mm512_castps_si512(b);
  return join(emulated_add_up(_mm256_castsi256_ps(low_half(x)), _mm256_castsi256_ps(low_half(y))),
              emulated_add_up(_mm256_castsi256_ps(high_half(x)), _mm256_castsi256_ps(high_half(y))));
}
[[maybe_unused]] inline __m512i emulated_madd_epi16(__m512i a, __m512i b) {
  return join(_mm256_madd_epi16(low_half(a), low_half(b)), _mm256_madd_epi16(high_half(a), high_half(b)));
}
// Writes past the caches, as two streaming stores of half the width.
[[maybe_unused]] inline void emulated_stream(void* to, __m512i a) {
  auto* at = static_cast<__m256i*>(to);
  _mm256_stream_si256(at, low_half(a));
  _mm256_stream_si256(at + 1, high_half(a));
}

}  // namespace

#define _mm512_stream_si512(to, a) emulated_stream(to, a)
#undef _mm512_madd_epi16
#define _mm512_madd_epi16(a, b) emulated_madd_epi16(a, b)
#undef _mm512_dpbf16_ps
#define _mm512_dpbf16_ps(sum, a, b) emulated_dpbf16(sum, a, b)
#define _mm512_cvtepi8_epi16(a) emulated_cvtepi8_epi16(a)
#define _mm512_testn_epi16_mask(a, b) emulated_testn_epi16(a, b)
#undef _mm512_mask_cmpeq_epi16_mask
#define _mm512_mask_cmpeq_epi16_mask(mask, a, b) ((mask)&emulated_cmpeq_epi16(a, b))
#undef _mm512_cmplt_epi16_mask
#define _mm512_cmplt_epi16_mask(a, b) emulated_cmplt_epi16(a, b)
#undef _mm512_mask_sub_epi16
#define _mm512_mask_sub_epi16(source, mask, a, b) emulated_mask_epi16(source, mask, _mm512_sub_epi16(a, b))
#undef _mm512_mask_mov_epi16
#define _mm512_mask_mov_epi16(source, mask, a) emulated_mask_epi16(source, mask, a)
#undef _mm512_mask_add_epi16
#define _mm512_mask_add_epi16(source, mask, a, b) emulated_mask_epi16(source, mask, _mm512_add_epi16(a, b))
#undef _mm512_cmpgt_epu16_mask
#define _mm512_cmpgt_epu16_mask(a, b) emulated_cmpgt_epu16(a, b)
#undef _mm512_cmpgt_epi16_mask
#define _mm512_cmpgt_epi16_mask(a, b) emulated_cmplt_epi16(b, a)
#undef _mm512_testn_epi32_mask
#define _mm512_testn_epi32_mask(a, b) emulated_testn_epi32(a, b)
// Rounds towards +Inf, the only rounding that the kernels request here.
#undef _mm512_add_round_ps
#define _mm512_add_round_ps(a, b, rounding) emulated_add_up(a, b)
#define _mm256_dpbusd_avx_epi32(sum, a, b) emulated_dpbusd(sum, a, b)
#undef _mm512_dpbusd_epi32
#define _mm512_dpbusd_epi32(sum, a, b) emulated_dpbusd(sum, a, b)
#define _mm256_dpwssd_avx_epi32(sum, a, b) emulated_dpwssd(sum, a, b)
#undef _mm512_dpwssd_epi32
#define _mm512_dpwssd_epi32(sum, a, b) emulated_dpwssd(sum, a, b)
#define _mm512_cvtepi32_pd(a) emulated_cvtepi32_pd(a)
#define _mm512_cvtepi8_epi32(a) emulated_cvtepi8_epi32(a)
#define _mm512_cvtepu8_epi32(a) emulated_cvtepu8_epi32(a)
#define _mm512_cvtepu16_epi32(a) emulated_cvtepu16_epi32(a)
#define _mm512_cvtepi32_epi16(a) emulated_cvtepi32_epi16(a)
#define _mm512_cvtepi32_epi8(a) emulated_cvtepi32_epi8(a)
#define _mm512_cvtps_epi32(a) emulated_cvtps_epi32(a)
#define _mm512_cvtepi32_ps(a) emulated_cvtepi32_ps(a)
#define _mm512_cvtph_ps(a) emulated_cvtph_ps(a)
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(a, rounding) emulated_cvtps_ph(a)
#define _mm512_cvtps_pd(a) emulated_cvtps_pd(a)
#define _mm512_cvtpd_ps(a) emulated_cvtpd_ps(a)
