// SPDX-License-Identifier: BSD-3-Clause
// Operations on vectors of sixteen 32-bit lanes for kernels/vnni/int8_linear.h and kernels/vnni/fixed_dots.h.
#pragma once

#include "kernels/avx512/int8.h"

namespace qcts::avx512 {
namespace {

struct Lanes : RowsToInt8 {
  static constexpr int kLanes = 16;
  using Ints = __m512i;
  using Floats = __m512;
  using Doubles = __m512d;

  static Ints zero() { return _mm512_setzero_si512(); }
  static Ints load(const void* from) { return _mm512_loadu_si512(from); }
  static void store(void* to, Ints a) { _mm512_storeu_si512(to, a); }

  static Ints shift_left_8(Ints a) { return _mm512_slli_epi32(a, 8); }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }

  static Floats set(float a) { return _mm512_set1_ps(a); }
  static Floats load_floats(uint32_t dtype, const void* from) { return load16(dtype, from); }
  static Floats load_some(uint32_t dtype, const void* from, int64_t count) {
    return count == kLanes ? load16(dtype, from) : avx512::load_some(dtype, from, count);
  }
  static void store_floats(float* to, Floats a) { _mm512_storeu_ps(to, a); }
  static void store_some(uint32_t dtype, void* to, Floats a, int64_t count) {
    if (count == kLanes) return store16(dtype, to, a);
    avx512::store_some(dtype, to, a, count);
  }
  static Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
  static Floats floats_of_i8(const uint8_t* from) {
    return to_floats(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats fmadd(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

  // A vector of doubles has half as many lanes.
  static Doubles set_double(double a) { return _mm512_set1_pd(a); }
  static Doubles load(const double* from) { return _mm512_loadu_pd(from); }
  static Doubles doubles_of_ints(const int32_t* from) {
    return _mm512_cvtepi32_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Doubles doubles_of_floats(const float* from) { return _mm512_cvtps_pd(_mm256_loadu_ps(from)); }
  static Doubles mul(Doubles a, Doubles b) { return _mm512_mul_pd(a, b); }
  static Doubles fmadd(Doubles a, Doubles b, Doubles c) { return _mm512_fmadd_pd(a, b, c); }
  static Doubles fnmadd(Doubles a, Doubles b, Doubles c) { return _mm512_fnmadd_pd(a, b, c); }
  static Floats narrow(Doubles low, Doubles high) {
    const __m512d first = _mm512_castps_pd(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)));
    return _mm512_castpd_ps(_mm512_insertf64x4(first, _mm256_castps_pd(_mm512_cvtpd_ps(high)), 1));
  }
  static void store_doubles(double* to, Floats a) {
    alignas(64) float lanes[kLanes];
    _mm512_storeu_ps(lanes, a);
    _mm512_storeu_pd(to, doubles_of_floats(lanes));
    _mm512_storeu_pd(to + kLanes / 2, doubles_of_floats(lanes + kLanes / 2));
  }
};

}  // namespace
}  // namespace qcts::avx512
