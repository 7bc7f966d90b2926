// SPDX-License-Identifier: BSD-3-Clause
// Float8 e4m3 weights with one scale per row, dense or 2:4 sparse,
// for the AVX-512 variants of `linear`. y is scale * sum(x * value(code)) + bias.
//
// Up to m = 4, decoding limits the speed.
// The sign and the seven low bits of a code are moved to their places in a binary16.
// The result is the value times 2^-8, also for subnormals.
// Moving the bits takes a widening load, a shift and a mask for half a vector.
// A conversion, a multiplication and a fused multiply-add follow for sixteen codes.
// If the bits were moved to their places in a float, the first three operations would work on a whole vector.
// In cache on an EPYC Zen 4, that takes 1.36 times as long at m = 1, 0.94 times at m = 2,
// and as long at m = 4. Handling NaN codes would cost three more operations.
// Instead, packing sets the scale of a column to NaN if it has a NaN code.
// Every sum over that column would be NaN anyway.
// A block of 64 columns holds one cache line for each k; its byte c belongs to column c.
// 64 scales (float32) follow.
#pragma once

#include "kernels/avx512/linear.h"
#include "kernels/families/sparse24_planes.h"

namespace qcts::avx512 {
namespace {

[[gnu::always_inline]] inline __m512 finite_e4m3(const uint8_t* at) {
  const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  const __m256i bits =
      _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(static_cast<int16_t>(0xBF80)));
  return _mm512_mul_ps(_mm512_cvtph_ps(bits), _mm512_set1_ps(256));
}

struct Fp8Row {
  static constexpr int kStep = 1, kBytesPerK = kColumns;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }
  static float factor(const uint8_t*) { return 1; }

  static __m512 decode(const uint8_t*, const uint8_t* at, int vector, int) {
    return finite_e4m3(at + vector * kLanes);
  }
  static void scales(const qcts_problem&, const uint8_t* at, int vector, __m512* scale, __m512*) {
    *scale = load16(QCTS_F32, at + vector * 4 * kLanes);
  }
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Fp8Row>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const uint8_t*>(in_plane(p, "qdata"));
    pack_parts(p, first_n, out, [&](int64_t n, int64_t first_k, int64_t last_k, const auto& put) {
      for (int64_t k = first_k; k < last_k; ++k) put(k, qdata[n * p.k + k]);
    });
  }

  // part(n, first_k, last_k, put) calls put(k, code) for every code. It may skip zeros.
  template <class Part>
  static void pack_parts(const qcts_problem& p, int64_t first_n, uint8_t* out, const Part& part) {
    constexpr uint32_t kNan = 0x7FC00000;
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    uint8_t* scales = out + p.k * kColumns;
    std::memcpy(scales, static_cast<const char*>(in_plane(p, "scale")) + 4 * first_n,
                static_cast<size_t>(4 * columns));
    for (int64_t k = 0; k < p.k; k += kChunk)
      for (int64_t c = 0; c < columns; ++c)
        part(first_n + c, k, k + kChunk < p.k ? k + kChunk : p.k, [&](int64_t at, uint8_t code) {
          out[at * kColumns + c] = code;
          if ((code & 0x7F) == 0x7F) std::memcpy(scales + 4 * c, &kNan, 4);
        });
  }
};

// Two of every four weights along k are stored (kernels/families/sparse24_planes.h).
// Packing fills in the zeros.
// After that, the kernel is the same as for fp8_row:
// it reads one byte per weight, although the checkpoint stores 5 / 8 of a byte, and saves no multiplication.
struct Fp8Sparse24 : Fp8Row {
  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const Sparse24Planes planes(p);
    pack_parts(p, first_n, out, [&](int64_t n, int64_t first_k, int64_t last_k, const auto& put) {
      planes.each_code(n, first_k, last_k, put);
    });
  }
};

}  // namespace
}  // namespace qcts::avx512
