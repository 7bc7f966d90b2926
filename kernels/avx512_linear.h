// The frame of `linear` for the AVX-512 variants, and for nothing else: every function has internal linkage.
// The scheme's file brings the layout of a block and the decoding of its codes.
//
// Lanes are columns. `prepare` cuts W into blocks of 64 columns; a block holds all k of its columns in the
// order of use, so a call reads one linear stream, and neither k nor the sum over k has a tail. Columns are
// split statically over threads, x is widened to float once.
// - m <= 4: codes are decoded in registers, used for every row, and forgotten. Bound by memory as long as
//   decoding keeps up.
// - m > 4: 128 k of a block are decoded to a panel of floats (32 KiB), which 6 rows by 64 columns at a time
//   multiply: 24 sums and 4 weights in 32 registers, x broadcast from memory. Bound by fused multiply-adds.
// The loops over sums are unrolled: an array of sums that a loop indexes lives in memory (EPYC Zen 4, two
// threads, 1024 x 1024: int4 44 us before and 22 after, m = 16 496 and 221). Every output is the same chain
// in either case: t = fma(x, w, t) over the k of a group in order, then total = fma(scale, t, total), then
// total = fma(zero, sum of x, total) where the scheme has zeros. So rows do not depend on m, nor anything on
// the number of threads.
#pragma once

#include "kernels/avx512_outputs.h"
#include "kernels/entry.h"

namespace qcts::avx512 {
namespace {

constexpr int kVectors = kColumns / kLanes;
constexpr int kRows = 64;    // of sums at a time: 16 KiB of them beside the panel
constexpr int kChunk = 128;  // k of a panel
// A core's prefetcher stops at the end of a page; the stream goes on.
constexpr int kPrefetchBytes = 4096;

struct Frame {
  const qcts_problem* problem;
  const uint8_t* prepared;
  float* x;       // [m][k]
  float* x_sums;  // [m][k / group]; only where the scheme has zeros
};

// A Scheme has
//   kStep, kBytesPerK            codes are stored in steps of kStep k, kBytesPerK bytes for each k of a block
//   kHasZeros                    a second vector of scales acts on the sum of x
//   group(p)                     elements along k that share a scale
//   header_bytes, scale_bytes(p) before a block's codes; behind each group's
//   decode(header, at, vector, step, out)   kStep k of `vector`: calls out(i, weights of k + i)
//   scales(p, at, vector, &scale, &zero)
template <class Scheme>
int64_t group_bytes(const qcts_problem& p) {
  return Scheme::group(p) * Scheme::kBytesPerK + Scheme::scale_bytes(p);
}
template <class Scheme>
int64_t block_bytes(const qcts_problem& p) {
  return Scheme::kHeaderBytes + p.k / Scheme::group(p) * group_bytes<Scheme>(p);
}
[[maybe_unused]] int64_t blocks(const qcts_problem& p) { return (p.n + kColumns - 1) / kColumns; }

// sums[m] += x[m] * codes, for k in [0, count).
template <class Scheme, int M>
[[gnu::noinline]] void multiply(const uint8_t* header, const uint8_t* codes, int64_t count, const float* x,
                                int64_t ldx, float (*sums)[kColumns]) {
  __m512 sum[M][kVectors];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[m][v] = _mm512_loadu_ps(&sums[m][v * kLanes]);
  for (int64_t k = 0; k < count; k += Scheme::kStep) {
    const uint8_t* at = codes + k * Scheme::kBytesPerK;
    for (int line = 0; line < Scheme::kStep * Scheme::kBytesPerK; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at + line + kPrefetchBytes), _MM_HINT_T0);
#pragma GCC unroll 8
    for (int i = 0; i < Scheme::kStep; ++i) {
      __m512 value[M];
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) value[m] = _mm512_set1_ps(x[m * ldx + k + i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const __m512 weight = Scheme::decode(header, at, v, i);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) sum[m][v] = _mm512_fmadd_ps(value[m], weight, sum[m][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(&sums[m][v * kLanes], sum[m][v]);
}

template <int M>
[[gnu::noinline]] void multiply_panel(const float (*panel)[kColumns], int64_t count, const float* x,
                                      int64_t ldx, float (*sums)[kColumns]) {
  __m512 sum[M][kVectors];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[m][v] = _mm512_loadu_ps(&sums[m][v * kLanes]);
  for (int64_t k = 0; k < count; ++k) {
    __m512 weight[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) weight[v] = _mm512_loadu_ps(&panel[k][v * kLanes]);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const __m512 value = _mm512_set1_ps(x[m * ldx + k]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[m][v] = _mm512_fmadd_ps(value, weight[v], sum[m][v]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(&sums[m][v * kLanes], sum[m][v]);
}

template <class Scheme>
void decode_panel(const uint8_t* header, const uint8_t* codes, int64_t count, float (*panel)[kColumns]) {
  for (int64_t k = 0; k < count; k += Scheme::kStep)
    for (int i = 0; i < Scheme::kStep; ++i)
      for (int v = 0; v < kVectors; ++v)
        _mm512_storeu_ps(&panel[k + i][v * kLanes],
                         Scheme::decode(header, codes + k * Scheme::kBytesPerK, v, i));
}

// count <= kChunk of k, rows <= kRows.
template <class Scheme>
void multiply_chunk(const uint8_t* header, const uint8_t* codes, int64_t count, const float* x, int64_t ldx,
                    int64_t rows, float (*sums)[kColumns], float (*panel)[kColumns]) {
  switch (rows) {
    case 1:
      return multiply<Scheme, 1>(header, codes, count, x, ldx, sums);
    case 2:
      return multiply<Scheme, 2>(header, codes, count, x, ldx, sums);
    case 3:
      return multiply<Scheme, 3>(header, codes, count, x, ldx, sums);
    case 4:
      return multiply<Scheme, 4>(header, codes, count, x, ldx, sums);
    default:
      break;
  }
  decode_panel<Scheme>(header, codes, count, panel);
  int64_t m = 0;
  for (; m + 6 <= rows; m += 6) multiply_panel<6>(panel, count, x + m * ldx, ldx, sums + m);
  switch (rows - m) {
    case 1:
      return multiply_panel<1>(panel, count, x + m * ldx, ldx, sums + m);
    case 2:
      return multiply_panel<2>(panel, count, x + m * ldx, ldx, sums + m);
    case 3:
      return multiply_panel<3>(panel, count, x + m * ldx, ldx, sums + m);
    case 4:
      return multiply_panel<4>(panel, count, x + m * ldx, ldx, sums + m);
    case 5:
      return multiply_panel<5>(panel, count, x + m * ldx, ldx, sums + m);
    default:
      return;
  }
}

// totals += scale * sums + zero * sum of x; sums become zero.
template <class Scheme>
void apply_scales(const qcts_problem& p, const uint8_t* scales, const float* x_sums, int64_t x_sums_stride,
                  int64_t rows, float (*sums)[kColumns], float (*totals)[kColumns]) {
  for (int v = 0; v < kVectors; ++v) {
    __m512 scale, zero;
    Scheme::scales(p, scales, v, &scale, &zero);
    for (int64_t m = 0; m < rows; ++m) {
      __m512 total = _mm512_loadu_ps(&totals[m][v * kLanes]);
      total = _mm512_fmadd_ps(scale, _mm512_loadu_ps(&sums[m][v * kLanes]), total);
      if (Scheme::kHasZeros) total = _mm512_fmadd_ps(zero, _mm512_set1_ps(x_sums[m * x_sums_stride]), total);
      _mm512_storeu_ps(&totals[m][v * kLanes], total);
      _mm512_storeu_ps(&sums[m][v * kLanes], _mm512_setzero_ps());
    }
  }
}

template <class Scheme>
void multiply_block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
  const qcts_problem& p = *frame.problem;
  alignas(64) float panel[kChunk][kColumns];
  alignas(64) float sums[kRows][kColumns];
  alignas(64) float totals[kRows][kColumns];
  std::memset(sums, 0, static_cast<size_t>(rows) * sizeof sums[0]);
  std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* header = frame.prepared + block * block_bytes<Scheme>(p);
  const int64_t group = Scheme::group(p), groups = p.k / group;
  const float* x = frame.x + first_m * p.k;
  for (int64_t g = 0; g < groups; ++g) {
    const uint8_t* codes = header + Scheme::kHeaderBytes + g * group_bytes<Scheme>(p);
    for (int64_t k = 0; k < group; k += kChunk) {
      const int64_t count = group - k < kChunk ? group - k : kChunk;
      multiply_chunk<Scheme>(header, codes + k * Scheme::kBytesPerK, count, x + g * group + k, p.k, rows,
                             sums, panel);
    }
    const float* x_sums = Scheme::kHasZeros ? frame.x_sums + first_m * groups + g : nullptr;
    apply_scales<Scheme>(p, codes + group * Scheme::kBytesPerK, x_sums, groups, rows, sums, totals);
  }
  store_rows(p, first_m, rows, block * kColumns, 1, totals);
}

template <class Scheme>
void multiply_blocks(void* context, int64_t first, int64_t last) {
  const Frame& frame = *static_cast<const Frame*>(context);
  const int64_t m_count = frame.problem->m;
  for (int64_t block = first; block < last; ++block)
    for (int64_t m = 0; m < m_count; m += kRows)
      Scheme::block(frame, block, m, m_count - m < kRows ? m_count - m : kRows);
}

// Rows of x as floats, and the sum of each group of a row.
template <class Scheme>
void widen_rows(void* context, int64_t first, int64_t last) {
  const Frame& frame = *static_cast<const Frame*>(context);
  const qcts_problem& p = *frame.problem;
  const int64_t bytes = dtype_bytes(p.x_dtype), group = Scheme::group(p), groups = p.k / group;
  for (int64_t m = first; m < last; ++m) {
    const char* from = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    float* to = frame.x + m * p.k;
    int64_t k = 0;
    for (; k + kLanes <= p.k; k += kLanes) _mm512_storeu_ps(to + k, load16(p.x_dtype, from + k * bytes));
    if (k < p.k) store_some(QCTS_F32, to + k, load_some(p.x_dtype, from + k * bytes, p.k - k), p.k - k);
    if (!Scheme::kHasZeros) continue;
    for (int64_t g = 0; g < groups; ++g) {
      // A group is a multiple of 8, not of 16.
      __m256 sum = _mm256_setzero_ps();
      for (int64_t i = 0; i < group; i += 8) sum = _mm256_add_ps(sum, _mm256_loadu_ps(to + g * group + i));
      float lanes[8];
      _mm256_storeu_ps(lanes, sum);
      float total = 0;
      for (float lane : lanes) total += lane;
      frame.x_sums[m * groups + g] = total;
    }
  }
}

template <class Scheme>
uint64_t workspace_bytes(const qcts_problem* p) {
  const int64_t x_sums = Scheme::kHasZeros ? p->m * (p->k / Scheme::group(*p)) : 0;
  return static_cast<uint64_t>(p->m * p->k + x_sums) * sizeof(float);
}
template <class Scheme>
uint64_t prepared_bytes(const qcts_problem* p) {
  return static_cast<uint64_t>(blocks(*p) * block_bytes<Scheme>(*p));
}

struct Preparation {
  const qcts_problem* problem;
  uint8_t* prepared;
};
template <class Scheme>
void prepare_blocks(void* context, int64_t first, int64_t last) {
  const Preparation& task = *static_cast<const Preparation*>(context);
  for (int64_t block = first; block < last; ++block)
    Scheme::prepare_block(*task.problem, block * kColumns,
                          task.prepared + block * block_bytes<Scheme>(*task.problem));
}
template <class Scheme>
void prepare_weight(const qcts_problem* problem, void* prepared) {
  std::memset(prepared, 0, prepared_bytes<Scheme>(problem));
  Preparation task = {problem, static_cast<uint8_t*>(prepared)};
  parallel_for(problem->threads, blocks(*problem), 1, prepare_blocks<Scheme>, &task);
}

template <class Scheme>
void run_linear(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  auto* x = static_cast<float*>(p.workspace);
  Frame frame = {problem, static_cast<const uint8_t*>(p.prepared), x, x + p.m * p.k};
  parallel_for(p.threads, p.m, 8, widen_rows<Scheme>, &frame);
  parallel_for(p.threads, blocks(p), 1, multiply_blocks<Scheme>, &frame);
}

template <const qcts_kernel& kKernel, class Scheme>
constexpr qcts_kernel linear_of(const char* scheme, const char* description) {
  return linear_entry(
      scheme, "avx512", description, QCTS_F32,
      {supports_problem<kKernel>, run_checked<kKernel, run_linear<Scheme>>, workspace_bytes<Scheme>,
       prepared_bytes<Scheme>, prepare_checked<kKernel, prepare_weight<Scheme>>});
}

}  // namespace
}  // namespace qcts::avx512
