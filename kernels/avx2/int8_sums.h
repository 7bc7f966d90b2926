// SPDX-License-Identifier: BSD-3-Clause
// Inner loops of `linear` with int8 x, for the AVX2 variants.
// The loops compute integer sums of rows of x times the codes of a block.
// The macro-kernel and the requirements on a Scheme are in kernels/avx2/int8_linear.h.
//
// Integers are exact in every order, so only the layout and the width of a product have to be chosen.
// vpmaddubsw computes 32 products in one operation, but it adds pairs in 16 bits and saturates.
// 2 * 255 * 127 does not fit, and splitting off signs fails at -128.
// So codes are widened to 16 bits: x once, and the weight as it is read.
// vpmaddwd then computes 16 exact products and 8 exact sums of two.
// With the widening and the addition, 16 weights take 3 operations.
// No two of them compete for the same pair of ports.
// At m = 1, that is 2 to 3 times as fast as memory. x enters as (qx - zx), which has 9 bits.
// For m > 2, a panel of widened codes is used, as sums.h uses a panel of floats.
#pragma once

#include "kernels/avx2/elements.h"
#include "kernels/avx2/streams.h"

namespace qcts::avx2 {
namespace {

constexpr int kColumns = 64, kVectors = kColumns / kLanes;
constexpr int kPanelPairs = 64;  // 16 KiB

struct PackedPanel {
  const uint8_t* codes;
  int64_t pairs;
  const int16_t* x;
  int64_t ldx;
  bool first;  // first part of its group: sums begin at 0
};

[[gnu::always_inline]] inline __m256i broadcast_pair(const int16_t* x) {
  int32_t pair;
  std::memcpy(&pair, x, 4);
  return _mm256_set1_epi32(pair);
}

[[gnu::always_inline]] inline __m256i first_sum(const PackedPanel& packed, const int32_t* sums) {
  return packed.first ? _mm256_setzero_si256() : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
}

// Adds the products of M rows and V vectors to sums[m]. The vectors start at `vector`.
template <class Scheme, int M, int V, int kAhead>
[[gnu::noinline]] void multiply_codes(const PackedPanel& packed, int vector, int32_t (*sums)[kColumns]) {
  __m256i sum[M][V];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sum[m][v] = first_sum(packed, &sums[m][(vector + v) * kLanes]);
  Share<kAhead, kVectors / V, Scheme::kStepBytes> share(packed.codes, packed.pairs / Scheme::kStepPairs,
                                                        vector / V);
  for (int64_t pair = 0; pair < packed.pairs; pair += Scheme::kStepPairs) {
    const uint8_t* at = packed.codes + pair / Scheme::kStepPairs * Scheme::kStepBytes;
    share.fetch();
#pragma GCC unroll 4
    for (int i = 0; i < Scheme::kStepPairs; ++i) {
      __m256i x[M];
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) x[m] = broadcast_pair(packed.x + m * packed.ldx + 2 * (pair + i));
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const __m256i weights = Scheme::decode(at, vector + v, i);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) sum[m][v] = _mm256_add_epi32(sum[m][v], _mm256_madd_epi16(x[m], weights));
      }
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(&sums[m][(vector + v) * kLanes]), sum[m][v]);
}

using Panel = int32_t (*)[kColumns];  // pairs of 16-bit codes

// Multiplies M rows by a panel. kPairBytes is the size of a pair in the codes.
// If it is 0, nothing is prefetched.
template <int M, int kPairBytes>
[[gnu::noinline]] void multiply_panel(const int32_t (*panel)[kColumns], const PackedPanel& packed,
                                      int32_t (*sums)[kColumns]) {
  for (int first = 0; first < kColumns; first += 2 * kLanes) {
    Share<kFarBytes, kVectors / 2, kPairBytes> share(packed.codes, packed.pairs, first / (2 * kLanes));
    __m256i sum[M][2];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) sum[m][v] = first_sum(packed, &sums[m][first + v * kLanes]);
    for (int64_t pair = 0; pair < packed.pairs; ++pair) {
      if (kPairBytes != 0) share.fetch();
      const auto* at = reinterpret_cast<const __m256i*>(&panel[pair][first]);
      const __m256i low = _mm256_loadu_si256(at), high = _mm256_loadu_si256(at + 1);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        const __m256i x = broadcast_pair(packed.x + m * packed.ldx + 2 * pair);
        sum[m][0] = _mm256_add_epi32(sum[m][0], _mm256_madd_epi16(x, low));
        sum[m][1] = _mm256_add_epi32(sum[m][1], _mm256_madd_epi16(x, high));
      }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(&sums[m][first + v * kLanes]), sum[m][v]);
  }
}

[[maybe_unused]] PackedPanel rows_from(PackedPanel packed, int64_t m) {
  packed.x += m * packed.ldx;
  return packed;
}

template <class Scheme>
void decode_panel(const PackedPanel& packed, Panel panel) {
  for (int64_t pair = 0; pair < packed.pairs; pair += Scheme::kStepPairs) {
    const uint8_t* at = packed.codes + pair / Scheme::kStepPairs * Scheme::kStepBytes;
    for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 4
      for (int i = 0; i < Scheme::kStepPairs; ++i)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(&panel[pair + i][v * kLanes]),
                            Scheme::decode(at, v, i));
  }
}

template <class Scheme>
void multiply_packed(const PackedPanel& packed, int64_t rows, int32_t (*sums)[kColumns], Panel panel) {
  if (rows == 1)
    return with_ahead<true>([&](auto ahead) { multiply_codes<Scheme, 1, 8, ahead>(packed, 0, sums); });
  if (rows == 2) {
    for (int v = 0; v < kVectors; v += 4) multiply_codes<Scheme, 2, 4, kFarBytes>(packed, v, sums);
    return;
  }
  decode_panel<Scheme>(packed, panel);
  constexpr int kPairBytes = Scheme::kStepBytes / Scheme::kStepPairs;
  int64_t m = rows >= 6 ? 6 : rows >= 4 ? 4 : 2;  // rows that prefetch the next codes
  if (m == 6) multiply_panel<6, kPairBytes>(panel, packed, sums);
  if (m == 4) multiply_panel<4, kPairBytes>(panel, packed, sums);
  if (m == 2) multiply_panel<2, kPairBytes>(panel, packed, sums);
  for (; m + 6 <= rows; m += 6) multiply_panel<6, 0>(panel, rows_from(packed, m), sums + m);
  if (m + 4 <= rows) multiply_panel<4, 0>(panel, rows_from(packed, m), sums + m), m += 4;
  if (m + 2 <= rows) multiply_panel<2, 0>(panel, rows_from(packed, m), sums + m), m += 2;
  if (m < rows) multiply_panel<1, 0>(panel, rows_from(packed, m), sums + m);
}

}  // namespace
}  // namespace qcts::avx2
