// SPDX-License-Identifier: BSD-3-Clause
// Loads and stores eight elements of any float dtype as a vector of floats.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/abi/problem.h"

namespace qcts::avx2 {
namespace {

constexpr int kLanes = 8;

[[maybe_unused]] __m256 widen_bf16(__m128i eight) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16));
}

// Loads eight elements of dtype (F32, F16 or BF16) at any alignment.
[[maybe_unused]] __m256 load8(uint32_t dtype, const void* from) {
  if (dtype == QCTS_F32) return _mm256_loadu_ps(static_cast<const float*>(from));
  const __m128i half = _mm_loadu_si128(static_cast<const __m128i*>(from));
  if (dtype == QCTS_F16) return _mm256_cvtph_ps(half);
  return widen_bf16(half);
}

// Rounds to nearest even. Every NaN becomes the quiet NaN.
[[maybe_unused]] __m128i to_bf16(__m256 value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, last), _mm256_set1_epi32(0x7FFF));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i top = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7FC00000), nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
}

// Rounds finite values to nearest even in four operations. The result is in the upper half of each lane.
[[gnu::always_inline]] inline __m256i round_to_upper(__m256 value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_add_epi32(_mm256_add_epi32(bits, last), _mm256_set1_epi32(0x7FFF));
}

// Rounds to bfloat16 in the upper half of each lane; -0 becomes +0.
// If |v| < 2^111, the product v * 65535 is rounded to a multiple of the last place of v in bfloat16.
// v * 65536 minus that product is v, rounded as the product was.
// A tie is rounded to the even multiple, because v * 65536 is an even multiple.
// If |v| < 2^-126, v must have no more bits than a subnormal bfloat16.
[[gnu::always_inline]] inline __m256 bf16_rounded(__m256 v) {
  return _mm256_fmsub_ps(v, _mm256_set1_ps(65536), _mm256_mul_ps(v, _mm256_set1_ps(65535)));
}
// Does the same for the quotient of two bfloat16 numbers.
// The quotient is not a tie, and it lies at least 1 / 256 below a power of two.
// So the sum of the quotient and about 65537 times the quotient stays in the binade of that product.
[[gnu::always_inline]] inline __m256 bf16_rounded_product(__m256 v, __m256 factor, __m256 by_65537) {
  const __m256 far = _mm256_mul_ps(v, by_65537);
  return _mm256_sub_ps(_mm256_fmadd_ps(v, factor, far), far);
}

// Rounds two vectors of eight finite values to bfloat16. Halves alternate: a0-3 b0-3 | a4-7 b4-7.
[[gnu::always_inline]] inline __m256i finite_bf16(__m256 a, __m256 b) {
  return _mm256_packus_epi32(_mm256_srli_epi32(round_to_upper(a), 16),
                             _mm256_srli_epi32(round_to_upper(b), 16));
}

// Stores eight floats, rounded once to dtype.
[[maybe_unused]] void store8(uint32_t dtype, void* to, __m256 value) {
  if (dtype == QCTS_F32) {
    _mm256_storeu_ps(static_cast<float*>(to), value);
  } else if (dtype == QCTS_F16) {
    _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  } else {
    _mm_storeu_si128(static_cast<__m128i*>(to), to_bf16(value));
  }
}

// Rounds to dtype and converts back.
[[maybe_unused]] __m256 round8(uint32_t dtype, __m256 value) {
  if (dtype == QCTS_F16) return _mm256_cvtph_ps(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  if (dtype == QCTS_F32) return value;
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(to_bf16(value)), 16));
}

// Load and store the first `count` elements. `count` is less than 8.
[[maybe_unused]] __m256 load_some(uint32_t dtype, const void* from, int64_t count) {
  char buffer[32] = {};
  std::memcpy(buffer, from, static_cast<size_t>(count * dtype_bytes(dtype)));
  return load8(dtype, buffer);
}
[[maybe_unused]] void store_some(uint32_t dtype, void* to, __m256 value, int64_t count) {
  char buffer[32];
  store8(dtype, buffer, value);
  std::memcpy(to, buffer, static_cast<size_t>(count * dtype_bytes(dtype)));
}

// Returns a & mask and reads the mask from memory.
// Eight or more sums, constants and temporaries fill the 16 registers.
// A spilled sum would add a store and a load to its dependency chain.
[[maybe_unused, gnu::always_inline]] inline __m256i and_memory(__m256i a, const uint32_t (&mask)[8]) {
  __m256i result;
  asm("vpand %2, %1, %0" : "=x"(result) : "x"(a), "m"(mask));
  return result;
}

constexpr uint32_t kBytes = 0x0F0F0F0Fu;
alignas(32) constexpr uint32_t kNibbles[8] = {kBytes, kBytes, kBytes, kBytes, kBytes, kBytes, kBytes, kBytes};

}  // namespace
}  // namespace qcts::avx2
