// SPDX-License-Identifier: BSD-3-Clause
// int8 weights with a scale and a zero point for each row,
// for `linear` with 256-bit vectors. y is scale * sum(x * (q - zero_point)) + bias.
//
// x of 16 bits is multiplied as integers (kernels/fixed/int8.h), and float32 x is multiplied as floats.
// With floats, eight codes cost a widening load, a conversion and a fused multiply-add.
// A block of 64 columns for floats begins with 64 zero points (int32).
// One cache line for each k follows; its byte c belongs to column c. 64 scales (float32) come last.
#pragma once

#include "kernels/avx2/dots/fixed_point_or_f32.h"
#include "kernels/fixed/int8.h"

namespace qcts::avx2 {
namespace {

// Source is one of the structs of kernels/families/int8_planes.h.
template <class Source, bool kZeroPoints = false>
struct Int8Row {
  static constexpr int kStep = 1, kWide = 1, kBytesPerK = kColumns, kSumsAlone = 8;
  static constexpr int64_t kHeaderBytes = 4 * kColumns;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static void decode(const uint8_t* header, const uint8_t* at, int vector, int,
                                            __m256 (&out)[kWide]) {
    __m256i codes =
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + vector * kLanes)));
    if (kZeroPoints)
      codes = _mm256_sub_epi32(
          codes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(header + vector * 4 * kLanes)));
    out[0] = _mm256_cvtepi32_ps(codes);
  }

  static void scales(const qcts_problem&, const uint8_t* at, float* scale, float*) {
    std::memcpy(scale, at, 4 * kColumns);
  }

  // Symmetric weights are the usual case and skip the subtraction.
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    if constexpr (Source::kHasZeros) {
      const uint8_t* header = call.prepared + block * block_bytes<Int8Row>(*call.problem);
      __m256i any = _mm256_setzero_si256();
      for (int v = 0; v < kVectors; ++v)
        any = _mm256_or_si256(any,
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(header + v * 4 * kLanes)));
      if (!_mm256_testz_si256(any, any))
        return multiply_block<Int8Row<Source, true>>(call, block, first_m, rows);
    }
    multiply_block<Int8Row<Source, false>>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const Source source(p);
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    uint8_t* codes = out + kHeaderBytes;
    transpose_bytes(reinterpret_cast<const uint8_t*>(source.codes(first_n)), p.k, columns, p.k, codes);
    copy_row_parameters(source, first_n, columns, out, codes + padded_k<Int8Row>(p) * kColumns);
  }
};

template <const qcts_kernel& kKernel, class Source, class Dots>
constexpr qcts_kernel int8_rows_of(const char* scheme, const char* variant, const char* description) {
  return fixed_point_or_f32_of<kKernel, fixed::Int8Rows<Source, Dots>, Int8Row<Source>>(scheme, variant,
                                                                                        description);
}

}  // namespace
}  // namespace qcts::avx2
