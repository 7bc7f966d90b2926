// SPDX-License-Identifier: BSD-3-Clause
// int8 weights with a scale and a zero point for each row,
// for the AVX-512 variants of `linear`. y is scale * sum(x * (q - zero_point)) + bias.
//
// Up to m = 4, reading one byte per weight limits the speed.
// Sixteen weights cost a widening load, a conversion and a fused multiply-add:
// three instructions for two ports. That is faster than a core's share of the memory bandwidth.
// A block of 64 columns begins with 64 zero points (int32).
// One cache line for each k follows; its byte c belongs to column c. 64 scales (float32) come last.
#pragma once

#include "kernels/avx512/linear.h"
#include "kernels/families/int8_planes.h"

namespace qcts::avx512 {
namespace {

// Source is one of the structs of kernels/families/int8_planes.h.
template <class Source, bool kZeroPoints = false>
struct Int8Row {
  static constexpr int kStep = 1, kBytesPerK = kColumns;
  static constexpr int64_t kHeaderBytes = 4 * kColumns;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }
  static float factor(const uint8_t*) { return 1; }

  static __m512 decode(const uint8_t* header, const uint8_t* at, int vector, int) {
    __m512i codes =
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + vector * kLanes)));
    if (kZeroPoints) codes = _mm512_sub_epi32(codes, _mm512_loadu_si512(header + vector * 4 * kLanes));
    return _mm512_cvtepi32_ps(codes);
  }

  static void scales(const qcts_problem&, const uint8_t* at, int vector, __m512* scale, __m512*) {
    *scale = load16(QCTS_F32, at + vector * 4 * kLanes);
  }

  // Symmetric weights are the usual case and skip the subtraction.
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    if constexpr (Source::kHasZeros) {
      const uint8_t* header = call.prepared + block * block_bytes<Int8Row>(*call.problem);
      __m512i any = _mm512_setzero_si512();
      for (int v = 0; v < kVectors; ++v)
        any = _mm512_or_si512(any, _mm512_loadu_si512(header + v * 4 * kLanes));
      if (_mm512_test_epi32_mask(any, any) != 0)
        return multiply_block<Int8Row<Source, true>>(call, block, first_m, rows);
    }
    multiply_block<Int8Row<Source, false>>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const Source source(p);
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    uint8_t* codes = out + kHeaderBytes;
    copy_columns(source, first_n, columns, codes);
    copy_row_parameters(source, first_n, columns, out, codes + p.k * kColumns);
  }
};

}  // namespace
}  // namespace qcts::avx512
