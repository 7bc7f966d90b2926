// SPDX-License-Identifier: BSD-3-Clause
// Macro-kernel and micro-kernel of `linear` with float x, for the AVX-512 variants.
// A Scheme defines the layout of a block and decodes its codes.
//
// A lane is a column. Packing cuts W into blocks of 64 columns.
// A block holds all values of k of its columns in the order of their use, so a call reads one linear stream.
// Neither k nor the sum over k has a tail. Threads get fixed shares of the columns.
// x is widened to float once.
// - If m <= 4, codes are decoded in registers and used for every row.
//   Memory limits the speed, if decoding keeps up.
// - If m > 4, 128 values of k of a block are decoded to a panel of floats (32 KiB).
//   The panel is multiplied by 6 rows, 64 columns at a time.
//   The 32 registers hold 24 sums and 4 weights; x is broadcast from memory.
//   Fused multiply-adds limit the speed.
//
// The loops over sums are unrolled, because an array of sums that a loop indexes is kept in memory,
// which takes twice as long for int4.
// Schemes call no functions, because a call spills all sums, which takes 1.1 to 1.25 times as long.
// Every output is the same chain in both cases. First, t = fma(x, w, t) over the k of a group in order.
// Then, total = fma(scale, t, total). Then, total = fma(zero, sum of x, total) if the scheme has zeros.
// So the result of a row does not depend on m, and nothing depends on the number of threads.
#pragma once

#include <concepts>

#include "kernels/avx512/outputs.h"
#include "kernels/families/entry.h"

namespace qcts::avx512 {
namespace {

constexpr int kVectors = kColumns / kLanes;
constexpr int kRows = 64;    // rows of sums at a time
constexpr int kChunk = 128;  // values of k in a panel
// The hardware prefetcher stops at the end of a page, but the stream continues on the next page.
// Many kernels run best with hardware prefetchers only (WeightReading, kernels/machine/weight_reading.h).
// But the kernels of this file wait for operations.
// On an EPYC Zen 4, int8, nf4, float8 and MXFP4 of 4096 x 4096 at m = 1 to 4 take 1 to 1.1 times as long
// without this prefetch.
constexpr int kPrefetchBytes = 4096;
// Prefetches into L2 while a panel is multiplied.
// Without this prefetch, memory is idle while a panel is multiplied,
// and int8 at m = 16 of 4096 x 4096 takes 1.25 times as long (EPYC Zen 4, one thread).
// The first pass prefetches everything. With a share for each pass, it was 0.95 to 1.07 times as fast.
// Twice the distance made no difference.
constexpr int kFarBytes = 16384;

struct LinearCall {
  const qcts_problem* problem;
  const uint8_t* prepared;
  float* x;       // [m][k]
  float* x_sums;  // [m][k / group]; only if the scheme has zeros
};

// A scheme defines the places of its codes in a block, and how codes become floats.
template <class T>
concept FloatScheme = requires(const qcts_problem& p, const LinearCall& call, const uint8_t* from,
                               uint8_t* to, int64_t n, int vector, int i, __m512* out) {
  // Codes are stored in steps of kStep values of k. A block has kBytesPerK bytes for each k.
  requires kChunk % T::kStep == 0 && T::kBytesPerK > 0;
  { T::kHasZeros } -> std::convertible_to<bool>;          // a second vector of scales acts on the sum of x
  { T::kHeaderBytes } -> std::convertible_to<int64_t>;    // size in bytes of a block's header
  { T::scale_bytes(p) } -> std::convertible_to<int64_t>;  // size in bytes of a group's scales
  // Returns the elements along k that share a scale: a multiple of kStep that divides kChunk.
  // With zeros it is a multiple of 8.
  { T::group(p) } -> std::convertible_to<int64_t>;
  // decode() returns element `i` along k of the step at `from`, for the 16 columns of `vector`.
  requires sizeof(T::decode(from, from, vector, i)) == sizeof(__m512);
  T::scales(p, from, vector, out, out);
  // Returns a factor for every sum at the end, or 1 if there is none.
  { T::factor(from) } -> std::convertible_to<float>;
  T::block(call, n, n, n);  // calls multiply_block of this scheme, or of another that this block allows
  T::pack_block(p, n, to);  // packs the block that starts at column n; `to` contains zeros
};

template <FloatScheme Scheme>
int64_t group_bytes(const qcts_problem& p) {
  return Scheme::group(p) * Scheme::kBytesPerK + Scheme::scale_bytes(p);
}
template <FloatScheme Scheme>
int64_t block_bytes(const qcts_problem& p) {
  return Scheme::kHeaderBytes + p.k / Scheme::group(p) * group_bytes<Scheme>(p);
}
[[maybe_unused]] int64_t blocks(const qcts_problem& p) { return (p.n + kColumns - 1) / kColumns; }

using Sums = float (*)[kColumns];

// A part of a group, or all of it, and the rows of x by which it is multiplied.
struct PackedPanel {
  const uint8_t *header, *codes;
  int64_t count;  // number of values of k
  const float* x;
  int64_t ldx;
  bool first, last;       // true for the first and the last part of the group
  const uint8_t* scales;  // scales of the group
  int64_t scale_bytes;
  const float* x_sums;  // sums of x over the group, `groups` floats apart; only if the scheme has zeros
  int64_t groups;
  const uint8_t* ahead;  // bytes to prefetch during the multiplication
  int64_t ahead_bytes;   // number of these bytes for each k
};

template <int M>
[[gnu::always_inline]] inline void open_sums(const PackedPanel& packed, const float (*open)[kColumns],
                                             __m512 (&sum)[M][kVectors]) {
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      sum[m][v] = packed.first ? _mm512_setzero_ps() : _mm512_loadu_ps(&open[m][v * kLanes]);
}

// Adds the sums to the totals at the end of a group. Before the end, stores them for the next part.
template <FloatScheme Scheme, int M>
[[gnu::always_inline]] inline void keep_sums(const qcts_problem& p, const PackedPanel& packed,
                                             const __m512 (&sum)[M][kVectors], Sums open, Sums totals) {
  if (!packed.last) {
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(&open[m][v * kLanes], sum[m][v]);
    return;
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    __m512 scale, zero;
    Scheme::scales(p, packed.scales, v, &scale, &zero);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      float* at = &totals[m][v * kLanes];
      __m512 total = _mm512_fmadd_ps(scale, sum[m][v], _mm512_loadu_ps(at));
      if (Scheme::kHasZeros)
        total = _mm512_fmadd_ps(zero, _mm512_set1_ps(packed.x_sums[m * packed.groups]), total);
      _mm512_storeu_ps(at, total);
    }
  }
}

// Prefetches the scales that are kAhead bytes after the scales of this group.
// The prefetch of the codes covers only the length of the codes.
template <int kAhead>
[[gnu::always_inline]] inline void fetch_scales(const PackedPanel& packed) {
  const int64_t bytes = packed.last ? packed.scale_bytes : 0;
  for (int64_t line = 0; line < bytes; line += 64)
    _mm_prefetch(reinterpret_cast<const char*>(packed.scales + kAhead + line),
                 kAhead < kFarBytes ? _MM_HINT_T0 : _MM_HINT_T1);
}

// Decodes codes and uses them at once.
template <FloatScheme Scheme, int M>
[[gnu::noinline]] void multiply_codes(const qcts_problem& p, const PackedPanel& packed, Sums open,
                                      Sums totals) {
  __m512 sum[M][kVectors];
  open_sums<M>(packed, open, sum);
  for (int64_t k = 0; k < packed.count; k += Scheme::kStep) {
    const uint8_t* at = packed.codes + k * Scheme::kBytesPerK;
    for (int line = 0; line < Scheme::kStep * Scheme::kBytesPerK; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at + line + kPrefetchBytes), _MM_HINT_T0);
#pragma GCC unroll 8
    for (int i = 0; i < Scheme::kStep; ++i) {
      __m512 value[M];
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) value[m] = _mm512_set1_ps(packed.x[m * packed.ldx + k + i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const __m512 weight = Scheme::decode(packed.header, at, v, i);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) sum[m][v] = _mm512_fmadd_ps(value[m], weight, sum[m][v]);
      }
    }
  }
  fetch_scales<kPrefetchBytes>(packed);
  keep_sums<Scheme, M>(p, packed, sum, open, totals);
}

template <FloatScheme Scheme, int M>
[[gnu::noinline]] void multiply_panel(const qcts_problem& p, const float (*panel)[kColumns],
                                      const PackedPanel& packed, Sums open, Sums totals) {
  __m512 sum[M][kVectors];
  open_sums<M>(packed, open, sum);
  const uint8_t* ahead = packed.ahead;
  for (int64_t k = 0; k < packed.count; ++k, ahead += packed.ahead_bytes) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
    __m512 weight[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) weight[v] = _mm512_loadu_ps(&panel[k][v * kLanes]);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const __m512 value = _mm512_set1_ps(packed.x[m * packed.ldx + k]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[m][v] = _mm512_fmadd_ps(value, weight[v], sum[m][v]);
    }
  }
  keep_sums<Scheme, M>(p, packed, sum, open, totals);
}

template <FloatScheme Scheme>
void decode_panel(const PackedPanel& packed, float (*panel)[kColumns]) {
  static_assert(kChunk % Scheme::kStep == 0);
  for (int64_t k = 0; k < packed.count; k += Scheme::kStep)
    for (int i = 0; i < Scheme::kStep; ++i)
      for (int v = 0; v < kVectors; ++v)
        _mm512_storeu_ps(&panel[k + i][v * kLanes],
                         Scheme::decode(packed.header, packed.codes + k * Scheme::kBytesPerK, v, i));
}

// Multiplies at most kChunk values of k.
// `packed` is a reference, because copying it would load fields in vectors that were just stored one by one,
// and wait for those stores (NVFP4, m = 1, EPYC Zen 4: 1.4 times as long).
template <FloatScheme Scheme>
void multiply_packed(const qcts_problem& p, const PackedPanel& packed, int64_t rows, float (*panel)[kColumns],
                     Sums open, Sums totals) {
  if (rows == 1) return multiply_codes<Scheme, 1>(p, packed, open, totals);
  if (rows == 2) return multiply_codes<Scheme, 2>(p, packed, open, totals);
  if (rows == 3) return multiply_codes<Scheme, 3>(p, packed, open, totals);
  if (rows == 4) return multiply_codes<Scheme, 4>(p, packed, open, totals);
  decode_panel<Scheme>(packed, panel);
  fetch_scales<kFarBytes>(packed);
  int64_t m = 0;
  PackedPanel rest = packed;
  const auto some = [&](auto multiply, int more) {
    multiply(p, panel, rest, open + m, totals + m);
    m += more;
    rest.x += more * packed.ldx;
    rest.x_sums += Scheme::kHasZeros ? more * packed.groups : 0;
    rest.ahead_bytes = 0;  // the first pass has prefetched everything
  };
  while (m + 6 <= rows) some(multiply_panel<Scheme, 6>, 6);
  if (rows - m == 5) some(multiply_panel<Scheme, 5>, 5);
  if (rows - m == 4) some(multiply_panel<Scheme, 4>, 4);
  if (rows - m == 3) some(multiply_panel<Scheme, 3>, 3);
  if (rows - m == 2) some(multiply_panel<Scheme, 2>, 2);
  if (rows - m == 1) some(multiply_panel<Scheme, 1>, 1);
}

template <FloatScheme Scheme>
void multiply_block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
  const qcts_problem& p = *call.problem;
  alignas(64) float panel[kChunk][kColumns];
  alignas(64) float open[kRows][kColumns];
  alignas(64) float totals[kRows][kColumns];
  std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* header = call.prepared + block * block_bytes<Scheme>(p);
  const uint8_t* codes = header + Scheme::kHeaderBytes;
  const int64_t group = Scheme::group(p), groups = p.k / group, scale_bytes = Scheme::scale_bytes(p);
  for (int64_t g = 0; g < groups; ++g, codes += group_bytes<Scheme>(p))
    for (int64_t k = 0; k < group; k += kChunk) {
      const int64_t count = group - k < kChunk ? group - k : kChunk;
      const uint8_t* at = codes + k * Scheme::kBytesPerK;
      const PackedPanel packed = {header,
                                  at,
                                  count,
                                  call.x + first_m * p.k + g * group + k,
                                  p.k,
                                  k == 0,
                                  k + count == group,
                                  codes + group * Scheme::kBytesPerK,
                                  scale_bytes,
                                  Scheme::kHasZeros ? call.x_sums + first_m * groups + g : nullptr,
                                  groups,
                                  at + kFarBytes,
                                  Scheme::kBytesPerK};
      multiply_packed<Scheme>(p, packed, rows, panel, open, totals);
    }
  store_rows(p, first_m, rows, block * kColumns, Scheme::factor(header), totals);
}

template <FloatScheme Scheme>
void multiply_blocks(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const int64_t m_count = call.problem->m;
  for (int64_t block = first; block < last; ++block)
    for (int64_t m = 0; m < m_count; m += kRows)
      Scheme::block(call, block, m, m_count - m < kRows ? m_count - m : kRows);
}

// Writes rows of x as floats, and the sum of each group of a row.
template <FloatScheme Scheme>
void widen_rows(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const qcts_problem& p = *call.problem;
  const int64_t bytes = dtype_bytes(p.x_dtype), group = Scheme::group(p), groups = p.k / group;
  for (int64_t m = first; m < last; ++m) {
    const char* from = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    float* to = call.x + m * p.k;
    int64_t k = 0;
    for (; k + kLanes <= p.k; k += kLanes) _mm512_storeu_ps(to + k, load16(p.x_dtype, from + k * bytes));
    if (k < p.k) store_some(QCTS_F32, to + k, load_some(p.x_dtype, from + k * bytes, p.k - k), p.k - k);
    if (!Scheme::kHasZeros) continue;
    for (int64_t g = 0; g < groups; ++g) {
      // A group is a multiple of 8, but not always of 16.
      __m256 sum = _mm256_setzero_ps();
      for (int64_t i = 0; i < group; i += 8) sum = _mm256_add_ps(sum, _mm256_loadu_ps(to + g * group + i));
      float lanes[8];
      _mm256_storeu_ps(lanes, sum);
      float total = 0;
      for (float lane : lanes) total += lane;
      call.x_sums[m * groups + g] = total;
    }
  }
}

template <FloatScheme Scheme>
uint64_t workspace_bytes(const qcts_problem* p) {
  const int64_t x_sums = Scheme::kHasZeros ? p->m * (p->k / Scheme::group(*p)) : 0;
  return static_cast<uint64_t>(p->m * p->k + x_sums) * sizeof(float);
}
template <FloatScheme Scheme>
uint64_t prepared_bytes(const qcts_problem* p) {
  return static_cast<uint64_t>(blocks(*p) * block_bytes<Scheme>(*p));
}

struct Packing {
  const qcts_problem* problem;
  uint8_t* prepared;
};
template <FloatScheme Scheme>
void pack_blocks(void* context, int64_t first, int64_t last) {
  const Packing& task = *static_cast<const Packing*>(context);
  for (int64_t block = first; block < last; ++block)
    Scheme::pack_block(*task.problem, block * kColumns,
                       task.prepared + block * block_bytes<Scheme>(*task.problem));
}
template <FloatScheme Scheme>
void pack_weight(const qcts_problem* problem, void* prepared) {
  std::memset(prepared, 0, prepared_bytes<Scheme>(problem));
  Packing task = {problem, static_cast<uint8_t*>(prepared)};
  parallel_for(problem->threads, blocks(*problem), 1, pack_blocks<Scheme>, &task);
}

template <FloatScheme Scheme>
void run_linear(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  auto* x = static_cast<float*>(p.workspace);
  LinearCall call = {problem, static_cast<const uint8_t*>(p.prepared), x, x + p.m * p.k};
  parallel_for(p.threads, p.m, 8, widen_rows<Scheme>, &call);
  parallel_for(p.threads, blocks(p), 1, multiply_blocks<Scheme>, &call);
}

template <const qcts_kernel& kKernel, FloatScheme Scheme>
constexpr qcts_kernel linear_of(const char* scheme, const char* description,
                                decltype(qcts_kernel::supports) supports = supports_problem<kKernel>) {
  return linear_entry(scheme, "avx512", description, QCTS_F32,
                      {supports, run_supported<kKernel, run_linear<Scheme>>, workspace_bytes<Scheme>,
                       prepared_bytes<Scheme>, prepare_checked<kKernel, pack_weight<Scheme>>});
}

}  // namespace
}  // namespace qcts::avx512
