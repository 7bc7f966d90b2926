// SPDX-License-Identifier: BSD-3-Clause
// Loads and stores sixteen elements of any float dtype as a vector of floats.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/abi/problem.h"

namespace qcts::avx512 {
namespace {

constexpr int kLanes = 16;

// Keeps a constant in a register, so that it is not loaded again for every use.
template <class Vector>
[[gnu::always_inline]] inline Vector kept(Vector constant) {
#ifdef __AVX512F__
  asm("" : "+v"(constant));
#endif
  return constant;
}

// Loads sixteen elements of dtype (F32, F16 or BF16) at any alignment.
[[maybe_unused]] __m512 load16(uint32_t dtype, const void* from) {
  if (dtype == QCTS_F32) return _mm512_loadu_ps(from);
  const __m256i half = _mm256_loadu_si256(static_cast<const __m256i*>(from));
  if (dtype == QCTS_F16) return _mm512_cvtph_ps(half);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

// Rounds to nearest even. Every NaN becomes the quiet NaN.
[[maybe_unused]] __m256i to_bf16(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, last), _mm512_set1_epi32(0x7FFF));
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(
      _mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(0x7FC00000)), 16));
}

// Rounds to bfloat16 in the upper half of each lane.
// kernels/avx2/elements.h has the proof and its conditions.
[[gnu::always_inline]] inline __m512 bf16_rounded(__m512 v) {
  return _mm512_fmsub_ps(v, _mm512_set1_ps(65536), _mm512_mul_ps(v, _mm512_set1_ps(65535)));
}

// Rounds to dtype and converts back. Every NaN becomes the quiet NaN.
template <uint32_t kDtype>
[[gnu::always_inline]] inline __m512 rounded(__m512 value) {
  if (kDtype == QCTS_F32) return value;
  if (kDtype == QCTS_F16) return _mm512_cvtph_ps(_mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i upper = _mm512_and_si512(
      _mm512_add_epi32(_mm512_add_epi32(bits, last), _mm512_set1_epi32(0x7FFF)), _mm512_set1_epi32(-0x10000));
  return _mm512_mask_mov_ps(_mm512_castsi512_ps(upper), _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q),
                            _mm512_set1_ps(__builtin_nanf("")));
}

// Stores sixteen floats, rounded once to dtype.
[[maybe_unused]] void store16(uint32_t dtype, void* to, __m512 value) {
  if (dtype == QCTS_F32) {
    _mm512_storeu_ps(to, value);
  } else if (dtype == QCTS_F16) {
    _mm256_storeu_si256(static_cast<__m256i*>(to),
                        _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  } else {
    _mm256_storeu_si256(static_cast<__m256i*>(to), to_bf16(value));
  }
}

// Load and store the first `count` elements. `count` is less than 16.
[[maybe_unused]] __m512 load_some(uint32_t dtype, const void* from, int64_t count) {
  char buffer[64] = {};
  std::memcpy(buffer, from, static_cast<size_t>(count * dtype_bytes(dtype)));
  return load16(dtype, buffer);
}
[[maybe_unused]] void store_some(uint32_t dtype, void* to, __m512 value, int64_t count) {
  char buffer[64];
  store16(dtype, buffer, value);
  std::memcpy(to, buffer, static_cast<size_t>(count * dtype_bytes(dtype)));
}

}  // namespace
}  // namespace qcts::avx512
