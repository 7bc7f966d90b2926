// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel for kernels/bf16/linear.h that uses VDPBF16PS.
//
// The instruction multiplies 32 pairs of bfloat16 and adds the products,
// two at a time, to sixteen float32 sums. A Zen 4 core starts one per cycle.
// The core also starts one VFMADD per cycle, which computes half as many products.
// So VDPBF16PS gives twice the arithmetic and half the bytes of a panel.
// An Emerald Rapids core starts one in two cycles, half the rate of its two VFMADDs.
// On Emerald Rapids, tiles are the fast way. x must already be bfloat16, so no product is rounded.
// - If m <= 6, codes are decoded in registers and used for all rows.
//   The registers hold 24 sums, 4 weights, one x and a table. Memory limits the speed, if decoding keeps up.
// - If m > 6, the first 6 rows leave the decoded weights in a panel,
//   which the other rows multiply 6 at a time. The multiplications limit the speed.
//   Meanwhile the next codes are prefetched into L2, one line for each pair of k.
//   Six rows multiply a pair in 24 cycles of a Zen 4 core.
//   In this time L2 delivers the 256 bytes of the pair.
//   So if most passes have six rows, a panel holds 1024 values of k (128 KiB).
//   Sums are then stored and loaded an eighth as often as with 128 values of k (16 KiB, half of an L1).
//   For int8 of 4096 x 4096, the larger panel is 1.05 times as slow at m = 8,
//   and 1.04, 1.05 and 1.10 times as fast at m = 16, 128 and 512.
//
// The loops over sums are unrolled,
// because an array of sums that a loop indexes is kept in memory (int4, m = 1: half the speed).
// Every output is the same chain in both cases: the pairs of a group in order, then its scales.
#pragma once

#include "kernels/bf16/linear.h"

namespace qcts::avx512bf16 {
namespace {

using namespace qcts::bf16;

constexpr int kRows = 64;       // rows of sums at a time
constexpr int kDirectRows = 6;  // rows that share the weights decoded in registers
constexpr int kPanelPairs = 512, kSmallPanelPairs = 64;
constexpr int kFarBytes = 65536;  // prefetch distance into L2, while the passes over a panel leave time

// Broadcasts two neighbouring elements of a row of x to all lanes.
[[gnu::always_inline]] inline __m512i broadcast_pair(const uint16_t* x) {
  int32_t pair;
  std::memcpy(&pair, x, 4);
  return _mm512_set1_epi32(pair);
}
[[gnu::always_inline]] inline __m512 dot(__m512 sum, __m512i weights, __m512i x) {
  return _mm512_dpbf16_ps(sum, __builtin_bit_cast(__m512bh, weights), __builtin_bit_cast(__m512bh, x));
}

// Computes totals += scale * sum + zero * (sum of x).
template <class Scheme, int M>
[[gnu::always_inline]] inline void group_epilogue(const qcts_problem& p, const uint8_t* scales,
                                                  const float* x_sums, int64_t ld_sums,
                                                  const __m512 (&sum)[M][kVectors], Sums totals) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    __m512 scale, zero;
    Scheme::scales(p, scales, v, &scale, &zero);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      float* at = &totals[m][v * kLanes];
      __m512 total = _mm512_fmadd_ps(scale, sum[m][v], _mm512_loadu_ps(at));
      if (Scheme::kHasZeros) total = _mm512_fmadd_ps(zero, _mm512_set1_ps(x_sums[m * ld_sums]), total);
      _mm512_storeu_ps(at, total);
    }
  }
}

// Multiplies all groups of a block by M rows of x, starting at first_m.
template <class Scheme, int M>
[[gnu::noinline]] void multiply_codes(const LinearCall& call, const uint8_t* block, int64_t first_m,
                                      Sums totals) {
  const qcts_problem& p = *call.problem;
  const Layout layout = call.layout;
  const int64_t padded = layout.padded_group, count = layout.groups, ldx = layout.x_stride;
  const uint16_t* x = call.x + first_m * ldx;
  const uint8_t* at = block + Scheme::kHeaderBytes;
  const int64_t ahead_line = call.prefetches ? 64 : 0;
  const uint8_t* ahead = at + ahead_line / 64 * kPrefetchBytes;
  for (int64_t g = 0; g < count; ++g) {
    __m512 sum[M][kVectors];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[m][v] = _mm512_setzero_ps();
    for (int64_t k = 0; k < padded; k += Scheme::kStep, at += Scheme::kStep * Scheme::kBytesPerK) {
#pragma GCC unroll 8
      for (int line = 0; line < Scheme::kStep * Scheme::kBytesPerK; line += 64, ahead += ahead_line)
        _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
#pragma GCC unroll 8
      for (int pair = 0; pair < Scheme::kStep / 2; ++pair) {
        __m512i weight[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) weight[v] = Scheme::decode(block, at, v, pair);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          const __m512i value = broadcast_pair(x + m * ldx + k + 2 * pair);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) sum[m][v] = dot(sum[m][v], weight[v], value);
        }
      }
    }
    for (int64_t line = 0; line < layout.scale_bytes; line += 64, ahead += ahead_line)
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
    group_epilogue<Scheme, M>(p, at, call.x_sums + first_m * count + g, count, sum, totals);
    at += layout.scale_bytes;
    x += padded;
  }
}

// A part of a group, or all of it.
struct PackedPanel {
  const uint8_t *block, *codes;  // start of the block; start of the codes
  Panel panel;
  int64_t pairs;
  bool first, last;                  // true for the first and the last part of the group
  const uint8_t* scales;             // scales of the group
  const uint8_t *ahead, *ahead_end;  // the bytes to prefetch during the multiplication
};

// For M rows of x. The first rows also fill the panel.
// Filling does not slow down the multipliers: they are two of four units, and decoding has a third.
template <class Scheme, int M, bool kFill>
[[gnu::noinline]] void multiply_panel(const LinearCall& call, const PackedPanel& packed, const uint16_t* x,
                                      const float* x_sums, Sums open, Sums totals) {
  constexpr int kStepPairs = kFill ? Scheme::kStep / 2 : 1;
  const int64_t ldx = call.layout.x_stride;
  __m512 sum[M][kVectors];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      sum[m][v] = packed.first ? _mm512_setzero_ps() : _mm512_loadu_ps(&open[m][v * kLanes]);
  const uint8_t *codes = packed.codes, *ahead = packed.ahead;
  const int64_t line = ahead < packed.ahead_end ? 64 : 0;
  Panel panel = packed.panel;
  for (const uint16_t* end = x + 2 * packed.pairs; x < end; panel += kStepPairs) {
#pragma GCC unroll 4
    for (int i = 0; i < kStepPairs; ++i, x += 2, ahead += line) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
      __m512i weight[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        weight[v] = kFill ? Scheme::decode(packed.block, codes, v, i) : panel[i][v];
      }
      // Stores come after all decoding.
      // A store between two lookups that share work would make the compiler repeat the work.
#pragma GCC unroll 4
      for (int v = 0; kFill && v < kVectors; ++v) panel[i][v] = weight[v];
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        const __m512i value = broadcast_pair(x + m * ldx);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[m][v] = dot(sum[m][v], weight[v], value);
      }
    }
    codes += Scheme::kStep * Scheme::kBytesPerK;
  }
  if (packed.last)
    return group_epilogue<Scheme, M>(*call.problem, packed.scales, x_sums, call.layout.groups, sum, totals);
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(&open[m][v * kLanes], sum[m][v]);
}

// Multiplies more than kDirectRows rows.
template <class Scheme>
void multiply_packed(const LinearCall& call, PackedPanel packed, const uint16_t* x, const float* x_sums,
                     int64_t rows, Sums open, Sums totals) {
  const int64_t ldx = call.layout.x_stride, ld_sums = call.layout.groups;
  int64_t m = 0;
  const auto some = [&](auto multiply, int count) {
    multiply(call, packed, x + m * ldx, x_sums + m * ld_sums, open + m, totals + m);
    m += count;
    packed.ahead += 64 * packed.pairs;
  };
  some(multiply_panel<Scheme, 6, true>, 6);
  while (m + 6 <= rows) some(multiply_panel<Scheme, 6, false>, 6);
  if (m + 4 <= rows) some(multiply_panel<Scheme, 4, false>, 4);
  if (m + 2 <= rows) some(multiply_panel<Scheme, 2, false>, 2);
  if (m < rows) some(multiply_panel<Scheme, 1, false>, 1);
}

template <class Scheme>
void multiply_by_panels(const LinearCall& call, const uint8_t* block, int64_t first_m, int64_t rows,
                        Sums totals) {
  const Layout& layout = call.layout;
  __m512i panel[kPanelPairs][kVectors];
  alignas(64) float open[kRows][kColumns];
  const int64_t padded = layout.padded_group, count = layout.groups;
  const int64_t max = rows > 2 * kDirectRows ? kPanelPairs : kSmallPanelPairs;
  const uint16_t* x = call.x + first_m * layout.x_stride;
  const uint8_t* codes = block + Scheme::kHeaderBytes;
  for (int64_t g = 0; g < count; ++g) {
    const uint8_t* scales = codes + padded * Scheme::kBytesPerK;
    for (int64_t k = 0; k < padded; k += 2 * max) {
      const int64_t pairs = (padded - k) / 2 < max ? (padded - k) / 2 : max;
      const bool last = k + 2 * pairs == padded;
      const int64_t bytes = 2 * pairs * Scheme::kBytesPerK + (last ? layout.scale_bytes : 0);
      const uint8_t* ahead = codes + kFarBytes;
      multiply_packed<Scheme>(call, {block, codes, panel, pairs, k == 0, last, scales, ahead, ahead + bytes},
                              x + g * padded + k, call.x_sums + first_m * count + g, rows, open, totals);
      codes += bytes;
    }
  }
}

template <class Scheme>
void multiply_block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
  const qcts_problem& p = *call.problem;
  alignas(64) float totals[kRows][kColumns];
  std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* at = call.prepared + block * call.layout.block_bytes;
  constexpr decltype(&multiply_codes<Scheme, 1>) kDirect[kDirectRows] = {
      multiply_codes<Scheme, 1>, multiply_codes<Scheme, 2>, multiply_codes<Scheme, 3>,
      multiply_codes<Scheme, 4>, multiply_codes<Scheme, 5>, multiply_codes<Scheme, 6>};
  if (rows <= kDirectRows) {
    kDirect[rows - 1](call, at, first_m, totals);
  } else {
    multiply_by_panels<Scheme>(call, at, first_m, rows, totals);
  }
  avx512::store_rows(p, first_m, rows, block * kColumns, Scheme::factor(at), totals);
}

template <class Scheme>
void multiply_blocks(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const int64_t m_count = call.problem->m;
  for (int64_t block = first; block < last; ++block)
    Scheme::specialize(call.prepared + block * call.layout.block_bytes, [&](auto scheme) {
      for (int64_t m = 0; m < m_count; m += kRows)
        multiply_block<decltype(scheme)>(call, block, m, m_count - m < kRows ? m_count - m : kRows);
    });
}

struct Pairs {
  static constexpr const char* kVariant = "avx512bf16";
  static constexpr qcts_numerics kNumerics = numerics_of_sums(QCTS_F32, QCTS_NONE, QCTS_NUM_FLUSH_SUBNORMALS);

  // Other dtypes of x are refused, because rounding x would make it a different kernel.
  static qcts_status takes(const qcts_problem& p, char* why, size_t why_size) {
    return takes_bf16(p, why, why_size);
  }
  static int64_t pad_x(int64_t) { return kPadK; }
  static int64_t padded_rows(int64_t m) { return m; }
  template <class Scheme>
  static uint64_t workspace_bytes(const qcts_problem* p) {
    return bf16::workspace_bytes<Scheme, Pairs>(p);
  }
  template <class Scheme>
  static void run(const qcts_problem* problem) {
    LinearCall call = call_of<Scheme, Pairs>(problem);
    parallel_for(problem->threads, problem->m, 8, copy_rows<Scheme>, &call);
    parallel_for(problem->threads, call.layout.blocks, 1, multiply_blocks<Scheme>, &call);
  }
};

}  // namespace
}  // namespace qcts::avx512bf16
