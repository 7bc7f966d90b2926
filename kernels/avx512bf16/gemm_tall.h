// SPDX-License-Identifier: BSD-3-Clause
// Tall tiles for 7 to 12 rows of x, for the AVX512-BF16 variants of `linear`.
// The weights have one scale per row, and their codes are cheap to decode to bfloat16.
//
// The registers hold a sum for each row and two vectors of 16 columns,
// so a decoded weight is used for all rows at once. No panel is stored, and no pass has few rows.
// A tile must find its inputs in L1, because every two dot products load an x.
// 256 values of k at a time are 16 KiB of codes, 6 KiB of x and 3 KiB of sums.
// For int8 of 4096 x 4096 on one core of an EPYC Zen 4,
// tall tiles are 1.11 times as fast as panels at m = 7 and m = 8, and 1.09 times as fast at m = 12.
// A tile of up to 16 rows and one vector would be possible, but it loads an x for each dot product.
// In some runs it was 1.04 times as fast as panels, in others 0.80 times.
#pragma once

#include "kernels/avx512bf16/linear.h"

namespace qcts::avx512bf16 {
namespace {

constexpr int kTallRows = 12, kTallVectors = 2;
constexpr int64_t kPartElems = 256;  // elements in a part of a row of x
constexpr int64_t kPartPairs = kPartElems / 2;

// True if one tile holds all rows of x and there are enough of them for a tall tile.
[[maybe_unused]] bool is_tall(const qcts_problem& p) { return p.m > kDirectRows && p.m <= kTallRows; }

// A part of a block for all columns. `pairs` is the number of pairs of weights.
struct TallPart {
  const uint8_t *block, *codes, *scales;
  const uint16_t* x;
  int64_t pairs;
  bool last;
};

// Adds products to the sums of M rows, V vectors of columns at a time.
// After the last part, applies the scales.
template <class Scheme, int M>
[[gnu::noinline]] void multiply_tall(const LinearCall& call, const TallPart& part, Sums totals) {
  constexpr int V = kTallVectors, kStepBytes = 2 * Scheme::kBytesPerK;
  constexpr int kLines = 2 * kStepBytes / 64 * V / kVectors;  // cache lines in the share of two pairs
  const uint8_t* ahead = part.codes + kFarBytes;
  for (int first = 0; first < kVectors; first += V) {
    __m512 sum[M][V];
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[m][v] = _mm512_loadu_ps(&totals[m][(first + v) * kLanes]);
    const uint8_t* codes = part.codes;
    const uint16_t* x = part.x;
    for (const uint16_t* end = x + 2 * part.pairs; x < end; ahead += kLines * 64) {
#pragma GCC unroll 2
      for (int line = 0; line < kLines; ++line)
        _mm_prefetch(reinterpret_cast<const char*>(ahead + 64 * line), _MM_HINT_T1);
#pragma GCC unroll 2
      for (int pair = 0; pair < 2; ++pair, x += 2, codes += kStepBytes) {
        __m512i weight[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) weight[v] = Scheme::decode(part.block, codes, first + v, 0);
#pragma GCC unroll 16
        for (int m = 0; m < M; ++m) {
          const __m512i value = broadcast_pair(x + m * kPartElems);
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sum[m][v] = dot(sum[m][v], weight[v], value);
        }
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      __m512 scale, zero;
      Scheme::scales(*call.problem, part.scales, first + v, &scale, &zero);
#pragma GCC unroll 16
      for (int m = 0; m < M; ++m) {
        if (part.last) sum[m][v] = _mm512_fmadd_ps(scale, sum[m][v], _mm512_setzero_ps());
        _mm512_storeu_ps(&totals[m][(first + v) * kLanes], sum[m][v]);
      }
    }
  }
}

// Multiplies all rows by a block.
// The problem must be is_tall; the Scheme must have one group and steps of one pair.
template <class Scheme>
void multiply_tall_block(const LinearCall& call, int64_t block) {
  static_assert(Scheme::kStep == 2 && !Scheme::kHasZeros && kDirectRows == 6);
  constexpr decltype(&multiply_tall<Scheme, 7>) kTall[kTallRows - kDirectRows] = {
      multiply_tall<Scheme, 7>,  multiply_tall<Scheme, 8>,  multiply_tall<Scheme, 9>,
      multiply_tall<Scheme, 10>, multiply_tall<Scheme, 11>, multiply_tall<Scheme, 12>};
  const Layout& layout = call.layout;
  const int64_t rows = call.problem->m;
  alignas(64) float totals[kTallRows][kColumns];
  std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* at = call.prepared + block * layout.block_bytes;
  const uint8_t* codes = at + Scheme::kHeaderBytes;
  const int64_t pairs = layout.padded_group / 2;
  for (int64_t pair = 0; pair < pairs; pair += kPartPairs) {
    const bool last = pair + kPartPairs >= pairs;
    const TallPart part = {at,
                           codes + 2 * pair * Scheme::kBytesPerK,
                           codes + 2 * pairs * Scheme::kBytesPerK,
                           call.x + rows * 2 * pair,
                           last ? pairs - pair : kPartPairs,
                           last};
    kTall[rows - kDirectRows - 1](call, part, totals);
  }
  avx512::store_rows(*call.problem, 0, rows, block * kColumns, Scheme::factor(at), totals);
}

// Copies x as [part][m][kPartElems] and pads the last part with zeros.
// The distance of rows is then a constant that a load can encode.
[[maybe_unused]] void copy_parts(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const qcts_problem& p = *call.problem;
  for (int64_t part = first; part < last; ++part)
    for (int64_t m = 0; m < p.m; ++m) {
      const int64_t k = part * kPartElems, count = p.k - k < kPartElems ? p.k - k : kPartElems;
      uint16_t* to = call.x + (part * p.m + m) * kPartElems;
      std::memcpy(to, static_cast<const char*>(p.x) + m * p.ldx_bytes + 2 * k,
                  static_cast<size_t>(2 * count));
      std::memset(to + count, 0, static_cast<size_t>(2 * (kPartElems - count)));
    }
}

template <class Scheme>
void multiply_tall_blocks(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  for (int64_t block = first; block < last; ++block)
    Scheme::specialize(call.prepared + block * call.layout.block_bytes,
                       [&](auto scheme) { multiply_tall_block<decltype(scheme)>(call, block); });
}

// Does the same as Pairs, but uses tall tiles for 7 to 12 rows.
struct TallPairs : Pairs {
  template <class Scheme>
  static uint64_t workspace_bytes(const qcts_problem* p) {
    const auto parts = static_cast<uint64_t>(p->m * ((p->k + kPartElems - 1) / kPartElems) * kPartElems * 2);
    return is_tall(*p) ? parts : Pairs::workspace_bytes<Scheme>(p);
  }
  template <class Scheme>
  static void run(const qcts_problem* problem) {
    if (!is_tall(*problem)) return Pairs::run<Scheme>(problem);
    LinearCall call = call_of<Scheme, Pairs>(problem);
    const int64_t parts = (problem->k + kPartElems - 1) / kPartElems;
    parallel_for(problem->threads, parts, 8, copy_parts, &call);
    parallel_for(problem->threads, call.layout.blocks, 1, multiply_tall_blocks<Scheme>, &call);
  }
};

}  // namespace
}  // namespace qcts::avx512bf16
