// SPDX-License-Identifier: BSD-3-Clause
// 4-bit codes with a scale and a floating-point zero for each group, for kernels/fixed/linear.h.
// Codes are 0 to 15, and the offset is 8. A step is 8 values of k. A column has 4 bytes in a step.
// Elements 0 to 3 are in the low nibbles, and elements 4 to 7 in the high nibbles.
// The codes of a group are followed by its 64 scales and 64 zeros in the weight's dtype.
#pragma once

#include "kernels/families/int4_planes.h"
#include "kernels/fixed/linear.h"

namespace qcts::fixed {
namespace {

// Source is one of the structs of kernels/families/int4_planes.h.
template <class Source, class Dots>
struct Int4Groups {
  using MicroKernel = Dots;
  static_assert(MicroKernel::kValues == FixedValues::bytes);
  static_assert(kColumns == kPlaneColumns);
  static constexpr int kStepK = 8;
  static constexpr bool kHasZeros = true, kLateScales = false;
  static constexpr int64_t kHeaderBytes = 0;
  struct Buffer {
    alignas(32) float scale[kColumns], zero[kColumns];
  };

  static int64_t group(const qcts_problem& p) { return p.group; }
  static int64_t tail_bytes(const qcts_problem& p) { return 2 * kColumns * dtype_bytes(p.w_dtype); }
  static __m256i offsets(const uint8_t*, int) { return _mm256_set1_epi32(8); }
  static __m256i minus_offsets(const uint8_t*, int, int32_t times) { return _mm256_set1_epi32(-8 * times); }
  static Scales scales(const qcts_problem& p, const uint8_t*, const uint8_t* tail, Buffer& buffer) {
    avx2::widen_scales(p.w_dtype, tail, buffer.scale);
    avx2::widen_scales(p.w_dtype, tail + kColumns * dtype_bytes(p.w_dtype), buffer.zero);
    return {buffer.scale, buffer.zero};
  }
  static __m256i codes(const uint8_t* at, int64_t k, int vector) {
    const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(8 * (k % 4) + 4 * (k / 4)));
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + vector * 4 * kLanes));
    return _mm256_and_si256(_mm256_srl_epi32(words, shift), _mm256_set1_epi32(15));
  }

  static void pack_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    const auto put = [](uint8_t* codes, int64_t column, int64_t k, uint32_t word) {
      const uint32_t ordered = halves_interleaved(word);
      std::memcpy(codes + k / kStepK * kStepBytes + 4 * column, &ordered, 4);
    };
    put_int4_groups(Source(p), first_n, layout.group_bytes, layout.code_bytes, put, out);
  }
};

}  // namespace
}  // namespace qcts::fixed
