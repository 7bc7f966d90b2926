// SPDX-License-Identifier: BSD-3-Clause
// Operations on vectors of eight lanes for kernels/vnni/int8_linear.h and kernels/vnni/fixed_dots.h.
// Products are not among them.
#pragma once

#include "kernels/vnni/int8_linear.h"

namespace qcts::avx2 {
namespace {

struct DotLanes : RowsToInt8 {
  static constexpr int kLanes = 8;
  using Ints = __m256i;
  using Floats = __m256;
  using Doubles = __m256d;

  static Ints zero() { return _mm256_setzero_si256(); }
  static Ints load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static void store(void* to, Ints a) { _mm256_storeu_si256(static_cast<__m256i*>(to), a); }
  static Ints broadcast(const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, 4);
    return _mm256_set1_epi32(four);
  }
  static Ints low_nibbles(Ints a) { return _mm256_and_si256(a, _mm256_set1_epi8(15)); }
  static Ints shift_right_4(Ints a) { return _mm256_srli_epi32(a, 4); }
  static Ints shift_left_8(Ints a) { return _mm256_slli_epi32(a, 8); }
  static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }

  static Floats set(float a) { return _mm256_set1_ps(a); }
  static Floats load_floats(uint32_t dtype, const void* from) { return load8(dtype, from); }
  static Floats load_some(uint32_t dtype, const void* from, int64_t count) {
    return count == kLanes ? load8(dtype, from) : avx2::load_some(dtype, from, count);
  }
  static void store_floats(float* to, Floats a) { _mm256_storeu_ps(to, a); }
  static void store_some(uint32_t dtype, void* to, Floats a, int64_t count) {
    if (count == kLanes) return store8(dtype, to, a);
    avx2::store_some(dtype, to, a, count);
  }
  static Floats to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }
  static Floats floats_of_i8(const uint8_t* from) {
    return to_floats(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats fmadd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

  // A vector of doubles has half as many lanes.
  static Doubles set_double(double a) { return _mm256_set1_pd(a); }
  static Doubles load(const double* from) { return _mm256_loadu_pd(from); }
  static Doubles doubles_of_ints(const int32_t* from) {
    return _mm256_cvtepi32_pd(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Doubles doubles_of_floats(const float* from) { return _mm256_cvtps_pd(_mm_loadu_ps(from)); }
  static Doubles mul(Doubles a, Doubles b) { return _mm256_mul_pd(a, b); }
  static Doubles fmadd(Doubles a, Doubles b, Doubles c) { return _mm256_fmadd_pd(a, b, c); }
  static Doubles fnmadd(Doubles a, Doubles b, Doubles c) { return _mm256_fnmadd_pd(a, b, c); }
  static Floats narrow(Doubles low, Doubles high) {
    return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
  }
  static void store_doubles(double* to, Floats a) {
    _mm256_storeu_pd(to, _mm256_cvtps_pd(_mm256_castps256_ps128(a)));
    _mm256_storeu_pd(to + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
  }
};

}  // namespace
}  // namespace qcts::avx2
