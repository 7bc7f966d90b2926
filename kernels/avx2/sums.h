// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel of `linear` with float x, for the AVX2 variants.
// The kernel computes sums of rows of x times the codes of a block.
// The macro-kernel and the requirements on a Scheme are in kernels/avx2/linear.h.
//
// A lane is a column; a block has 64 columns.
// The sum over k has no tail, because k is padded with codes that are multiplied by zeros of x.
// - If m <= 4, codes are decoded in registers and used for one row or two.
//   The file of the scheme says whether reading memory or decoding limits the speed.
//   One row keeps the 8 sums of 64 columns in registers.
//   The addition of a fused multiply-add takes 4 cycles, and two can start in each cycle,
//   so 8 chains are needed.
// - If m > 4, 64 values of k of a block are decoded to a panel of floats (16 KiB, half of a 32 KiB L1).
//   The panel is multiplied by 6 rows, 16 columns at a time.
//   The 16 registers hold 12 sums, 2 weights and 1 broadcast.
//   There are 12 fused multiply-adds for 8 loads, so the two multipliers limit the speed,
//   not the two load ports.
//
// The loops over sums are unrolled.
// An array of sums that a loop indexes is kept in memory, which adds a store and a load to every chain.
// Unrolling reduced int8 at m = 1 for 1024 x 1024 from 92 us to 46 us.
// Every output is the same chain in both cases. First, t = fma(x, w, t) over the k of a group in order.
// Then, total = fma(scale, t, total). Then, total = fma(zero, sum of x, total) if the scheme has zeros.
// So the result of a row does not depend on m, and nothing depends on the number of threads.
#pragma once

#include "kernels/avx2/outputs.h"
#include "kernels/avx2/streams.h"

namespace qcts::avx2 {
namespace {

constexpr int kPanelK = 64;    // values of k in a panel
constexpr int kDirectK = 256;  // values of k in a packed panel whose codes stay in L1 for the second pass

// A part of a group, or all of it: `count` values of k of one block, for some rows.
struct PackedPanel {
  const uint8_t* codes;
  int64_t count;
  const float* x;
  int64_t ldx;
  bool first, last;     // true for the first and the last part of the group
  const float* scale;   // [64]; only if `last` is true
  const float* zero;    // [64], or NULL
  const float* x_sums;  // sums of x over the group; rows are ld_sums apart
  int64_t ld_sums;
};
// Sums of the unfinished group (`open`) and of the finished groups (`total`).
struct Sums {
  float (*open)[kColumns];
  float (*total)[kColumns];
};

// Stores the sums of V vectors, or applies the scales to them if the group is finished.
template <int M, int V>
[[gnu::always_inline]] inline void keep(const PackedPanel& given, int vector, __m256 (&sum)[M][V],
                                        const Sums& given_sums) {
  const PackedPanel packed = given;  // a copy, which the stores below cannot alias
  const Sums sums = given_sums;
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const int at = (vector + v) * kLanes;
    if (!packed.last) {
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) _mm256_storeu_ps(&sums.open[m][at], sum[m][v]);
      continue;
    }
    const __m256 scale = _mm256_loadu_ps(packed.scale + at);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      __m256 total = _mm256_fmadd_ps(scale, sum[m][v], _mm256_loadu_ps(&sums.total[m][at]));
      if (packed.zero != nullptr)
        total = _mm256_fmadd_ps(_mm256_loadu_ps(packed.zero + at),
                                _mm256_broadcast_ss(packed.x_sums + m * packed.ld_sums), total);
      _mm256_storeu_ps(&sums.total[m][at], total);
    }
  }
}

template <int M, int V>
[[gnu::always_inline]] inline void open_sums(const PackedPanel& packed, int vector, __m256 (&sum)[M][V],
                                             const Sums& sums) {
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      sum[m][v] = packed.first ? _mm256_setzero_ps() : _mm256_loadu_ps(&sums.open[m][(vector + v) * kLanes]);
}

// Loads x again for every use, which costs a load port but no register.
// Otherwise the compiler would keep the values of a step through all vectors and spill a sum instead.
[[gnu::always_inline]] inline __m256 broadcast(const float* x) {
  __m256 value;
  asm volatile("vbroadcastss %1, %0" : "=x"(value) : "m"(*x));
  return value;
}

// Decodes codes and uses them at once, for M rows and V vectors, starting at `vector`.
// Neighbouring multiply-adds belong to different chains. The scheduler of a core holds about 64 operations.
// Eight consecutive operations of one chain would fill it with operations
// that wait (4-bit codes, m = 1: 1.1 times slower).
template <class Scheme, int M, int V>
[[gnu::noinline]] void multiply_codes(const uint8_t* header, const PackedPanel& packed, int vector,
                                      const Sums& sums) {
  constexpr int kStep = Scheme::kStep, kWide = Scheme::kWide;
  __m256 sum[M][V];
  open_sums<M, V>(packed, vector, sum, sums);
  for (int64_t k = 0; k < packed.count; k += kStep) {
    const uint8_t* at = packed.codes + k * Scheme::kBytesPerK;
    if (vector == 0)
#pragma GCC unroll 8
      for (int line = 0; line < kStep * Scheme::kBytesPerK; line += 64)
        _mm_prefetch(reinterpret_cast<const char*>(at + line + kPrefetchBytes), _MM_HINT_T0);
#pragma GCC unroll 8
    for (int v = 0; v < V; v += kWide) {
#pragma GCC unroll 8
      for (int i = 0; i < kStep; ++i) {
        __m256 weight[kWide];
        Scheme::decode(header, at, vector + v, i, weight);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          const __m256 value = broadcast(packed.x + m * packed.ldx + k + i);
#pragma GCC unroll 8
          for (int w = 0; w < kWide; ++w) sum[m][v + w] = _mm256_fmadd_ps(value, weight[w], sum[m][v + w]);
        }
      }
    }
  }
  keep<M, V>(packed, vector, sum, sums);
}

template <int M>
[[gnu::noinline]] void multiply_panel(const float (*panel)[kColumns], const PackedPanel& packed,
                                      const Sums& sums) {
  for (int vector = 0; vector < kVectors; vector += 2) {
    __m256 sum[M][2];
    open_sums<M, 2>(packed, vector, sum, sums);
    for (int64_t k = 0; k < packed.count; ++k) {
      const __m256 low = _mm256_loadu_ps(&panel[k][vector * kLanes]);
      const __m256 high = _mm256_loadu_ps(&panel[k][(vector + 1) * kLanes]);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        const __m256 value = _mm256_broadcast_ss(packed.x + m * packed.ldx + k);
        sum[m][0] = _mm256_fmadd_ps(value, low, sum[m][0]);
        sum[m][1] = _mm256_fmadd_ps(value, high, sum[m][1]);
      }
    }
    keep<M, 2>(packed, vector, sum, sums);
  }
}

// Returns the part of a packed panel that starts at row m of x and of the sums.
[[maybe_unused]] PackedPanel rows_from(PackedPanel packed, int64_t m) {
  packed.x += m * packed.ldx;
  packed.x_sums += packed.zero != nullptr ? m * packed.ld_sums : 0;
  return packed;
}

[[maybe_unused]] void multiply_rows_of_panel(const float (*panel)[kColumns], const PackedPanel& packed,
                                             int64_t rows, const Sums& sums) {
  int64_t m = 0;
  const auto at = [&] { return Sums{sums.open + m, sums.total + m}; };
  for (; m + 6 <= rows; m += 6) multiply_panel<6>(panel, rows_from(packed, m), at());
  if (m + 4 <= rows) {
    multiply_panel<4>(panel, rows_from(packed, m), at());
    m += 4;
  }
  if (m + 2 <= rows) {
    multiply_panel<2>(panel, rows_from(packed, m), at());
    m += 2;
  }
  if (m < rows) multiply_panel<1>(panel, rows_from(packed, m), at());
}

template <class Scheme>
void decode_panel(const uint8_t* header, const uint8_t* codes, int64_t count, float (*panel)[kColumns]) {
  for (int64_t k = 0; k < count; k += Scheme::kStep) {
    const uint8_t* at = codes + k * Scheme::kBytesPerK;
    for (int line = 0; line < Scheme::kStep * Scheme::kBytesPerK; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at + line + kPrefetchBytes), _MM_HINT_T0);
    for (int v = 0; v < kVectors; v += Scheme::kWide) {
#pragma GCC unroll 8
      for (int i = 0; i < Scheme::kStep; ++i) {
        __m256 weight[Scheme::kWide];
        Scheme::decode(header, at, v, i, weight);
#pragma GCC unroll 8
        for (int w = 0; w < Scheme::kWide; ++w) _mm256_storeu_ps(&panel[k + i][(v + w) * kLanes], weight[w]);
      }
    }
  }
}

template <class Scheme>
void multiply_packed(const uint8_t* header, const PackedPanel& packed, int64_t rows, const Sums& sums,
                     float (*panel)[kColumns]) {
  if (rows > 4) {
    decode_panel<Scheme>(header, packed.codes, packed.count, panel);
    multiply_rows_of_panel(panel, packed, rows, sums);
    return;
  }
  int64_t m = 0;
  const auto at = [&] { return Sums{sums.open + m, sums.total + m}; };
  for (; m + 2 <= rows; m += 2)
    for (int v = 0; v < kVectors; v += 4) multiply_codes<Scheme, 2, 4>(header, rows_from(packed, m), v, at());
  constexpr int kAlone = Scheme::kSumsAlone;
  if (m < rows)
    for (int v = 0; v < kVectors; v += kAlone)
      multiply_codes<Scheme, 1, kAlone>(header, rows_from(packed, m), v, at());
}

}  // namespace
}  // namespace qcts::avx2
