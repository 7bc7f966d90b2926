// SPDX-License-Identifier: BSD-3-Clause
// int8 weights with a scale and a zero point for each row, for the variants of `linear`
// that multiply pairs of bfloat16. y is scale * sum(x * (q - zero_point)) + bias.
//
// The difference of two int8 has at most eight significant bits, so it is exact in bfloat16.
// The low half of the difference as a float32 is 0.
// One masked shuffle puts the upper half of an even element below the upper half of the next odd element.
// 32 weights take five operations, and none of them needs the multipliers.
// On one thread of an EPYC Zen 4, a shift and a bitwise or instead of the shuffle took 1.07 times as long
// at m = 1 to 4. On such a core, m = 1 reads one byte per weight about as fast as memory supplies it.
// A block of 64 columns begins with 64 zero points (int32).
// For every two values of k, one cache line for the even k and one for the odd k follow.
// Byte c of a line belongs to column c. 64 scales (float32) come last.
#pragma once

#include "kernels/bf16/linear.h"
#include "kernels/families/int8_planes.h"

namespace qcts::bf16 {
namespace {

// Source is one of the structs of kernels/families/int8_planes.h.
template <class Source, bool kZeroPoints = false>
struct Int8Row {
  static constexpr int kStep = 2, kBytesPerK = kColumns;
  static constexpr int64_t kHeaderBytes = 4 * kColumns;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static __m512i difference(const uint8_t* header, const uint8_t* line, int vector) {
    __m512i codes =
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(line + vector * kLanes)));
    if (kZeroPoints) codes = _mm512_sub_epi32(codes, _mm512_loadu_si512(header + vector * 4 * kLanes));
    return _mm512_castps_si512(_mm512_cvtepi32_ps(codes));
  }
  [[gnu::always_inline]] static __m512i decode(const uint8_t* header, const uint8_t* at, int vector, int) {
    const __m512i down =
        _mm512_broadcast_i32x4(_mm_set_epi32(0x0F0E0F0E, 0x0B0A0B0A, 0x07060706, 0x03020302));
    return _mm512_mask_shuffle_epi8(difference(header, at + kColumns, vector), 0x3333333333333333,
                                    difference(header, at, vector), down);
  }

  [[gnu::always_inline]] static void scales(const qcts_problem&, const uint8_t* at, int vector, __m512* scale,
                                            __m512*) {
    *scale = _mm512_loadu_ps(at + vector * 4 * kLanes);
  }

  // Symmetric weights are the usual case and skip the subtraction.
  static void specialize([[maybe_unused]] const uint8_t* header, const auto& use) {
    if constexpr (Source::kHasZeros) {
      __m512i any = _mm512_setzero_si512();
      for (int v = 0; v < kVectors; ++v)
        any = _mm512_or_si512(any, _mm512_loadu_si512(header + v * 4 * kLanes));
      if (_mm512_test_epi32_mask(any, any) != 0) return use(Int8Row<Source, true>());
    }
    use(Int8Row<Source, false>());
  }

  static void pack_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    const Source source(p);
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    uint8_t* codes = out + kHeaderBytes;
    copy_columns(source, first_n, columns, codes);
    copy_row_parameters(source, first_n, columns, out, codes + layout.padded_group * kColumns);
  }
};

}  // namespace
}  // namespace qcts::bf16
