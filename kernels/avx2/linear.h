// SPDX-License-Identifier: BSD-3-Clause
// Macro-kernel of `linear` with float x, for the AVX2 variants.
// A Scheme defines the layout of a block and decodes its codes. kernels/avx2/sums.h is the micro-kernel.
//
// Packing cuts W into blocks of 64 columns.
// A block holds all values of k of its columns in the order of their use, so a call reads one linear stream.
// Threads get fixed shares of the columns. x is widened to float once.
#pragma once

#include <concepts>

#include "kernels/avx2/outputs.h"
#include "kernels/avx2/sums.h"
#include "kernels/families/entry.h"

namespace qcts::avx2 {
namespace {

constexpr int kRows = 64;  // rows of sums at a time
// x, and the codes of a scheme with one scale per row, are padded to a multiple of kPadK
constexpr int64_t kPadK = 8;

struct LinearCall {
  const qcts_problem* problem;
  const uint8_t* prepared;
  float* x;       // [m][x_stride]
  float* x_sums;  // [m][k / group]; only if the scheme has zeros
};

// A scheme defines the places of its codes in a block, and how codes become floats.
template <class T>
concept FloatScheme =
    requires(const qcts_problem& p, const LinearCall& call, const uint8_t* from, uint8_t* to, int64_t n,
             int vector, int i, float* out, __m256 (&wide)[T::kWide]) {
      // Codes are decoded kStep values of k and kWide vectors at a time.
      // A block has kBytesPerK bytes for each k.
      requires T::kStep > 0 && T::kWide > 0 && T::kBytesPerK > 0;
      requires T::kSumsAlone > 0;  // vectors of sums that one row keeps in registers during decoding
      { T::kHasZeros } -> std::convertible_to<bool>;        // a second vector of scales acts on the sum of x
      { T::kHeaderBytes } -> std::convertible_to<int64_t>;  // size in bytes of a block's header
      { T::scale_bytes(p) } -> std::convertible_to<int64_t>;  // size in bytes of a group's scales
      {
        T::group(p)
      } -> std::convertible_to<int64_t>;  // elements that share a scale: a multiple of kStep, or all of k
      // wide[w] is element `i` along k of the step, for the 8 columns of vector + w
      T::decode(from, from, vector, i, wide);
      T::scales(p, from, out, out);  // reads 64 scales and 64 zeros after the codes of a group
      // Returns a factor for every sum at the end, or 1 if there is none.
      { T::factor(from) } -> std::convertible_to<float>;
      T::block(call, n, n, n);  // calls multiply_block of this scheme, or of another that this block allows
      T::pack_block(p, n, to);  // packs the block that starts at column n; `to` contains zeros
    };

template <FloatScheme Scheme>
int64_t padded_k(const qcts_problem& p) {
  return (p.k + kPadK - 1) / kPadK * kPadK;
}
template <FloatScheme Scheme>
int64_t padded_group(const qcts_problem& p) {
  const int64_t group = Scheme::group(p);
  return group == p.k ? padded_k<Scheme>(p) : group;
}
template <FloatScheme Scheme>
int64_t group_bytes(const qcts_problem& p) {
  return padded_group<Scheme>(p) * Scheme::kBytesPerK + Scheme::scale_bytes(p);
}
template <FloatScheme Scheme>
int64_t block_bytes(const qcts_problem& p) {
  return Scheme::kHeaderBytes + p.k / Scheme::group(p) * group_bytes<Scheme>(p);
}
[[maybe_unused]] int64_t blocks(const qcts_problem& p) { return (p.n + kColumns - 1) / kColumns; }

template <FloatScheme Scheme>
void multiply_block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
  const qcts_problem& p = *call.problem;
  alignas(64) float panel[kPanelK][kColumns];
  alignas(64) float open[kRows][kColumns];
  alignas(64) float totals[kRows][kColumns];
  alignas(64) float scale[kColumns], zero[kColumns];
  std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* header = call.prepared + block * block_bytes<Scheme>(p);
  const int64_t group = padded_group<Scheme>(p), groups = p.k / Scheme::group(p), ldx = padded_k<Scheme>(p);
  const int64_t max = rows > 4 ? kPanelK : rows == 1 && Scheme::kSumsAlone == kVectors ? group : kDirectK;
  const int64_t group_stride = group_bytes<Scheme>(p), scale_bytes = Scheme::scale_bytes(p);
  for (int64_t g = 0; g < groups; ++g) {
    const uint8_t* codes = header + Scheme::kHeaderBytes + g * group_stride;
    const uint8_t* scales = codes + group * Scheme::kBytesPerK;
    // Prefetches the scales of the next group, which the prefetch of the stream has brought into a cache.
    for (int64_t line = 0; line < scale_bytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(scales + group_stride + line), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(scales + kPrefetchBytes + line), _MM_HINT_T0);
    }
    Scheme::scales(p, scales, scale, zero);
    for (int64_t k = 0; k < group; k += max) {
      PackedPanel packed = {codes + k * Scheme::kBytesPerK,
                            group - k < max ? group - k : max,
                            call.x + first_m * ldx + g * group + k,
                            ldx,
                            k == 0,
                            k + max >= group,
                            scale,
                            nullptr,
                            nullptr,
                            groups};
      if (Scheme::kHasZeros) packed.zero = zero, packed.x_sums = call.x_sums + first_m * groups + g;
      multiply_packed<Scheme>(header, packed, rows, {open, totals}, panel);
    }
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

// Writes rows of x as floats, padded with zeros, and the sum of each group of a row.
template <FloatScheme Scheme>
void widen_rows(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const qcts_problem& p = *call.problem;
  const int64_t bytes = dtype_bytes(p.x_dtype), group = Scheme::group(p), groups = p.k / group;
  for (int64_t m = first; m < last; ++m) {
    const char* from = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    float* to = call.x + m * padded_k<Scheme>(p);
    int64_t k = 0;
    for (; k + kLanes <= p.k; k += kLanes) _mm256_storeu_ps(to + k, load8(p.x_dtype, from + k * bytes));
    if (k < p.k) _mm256_storeu_ps(to + k, load_some(p.x_dtype, from + k * bytes, p.k - k));
    if (!Scheme::kHasZeros) continue;
    for (int64_t g = 0; g < groups; ++g) {
      __m256 sum = _mm256_setzero_ps();
      for (int64_t i = 0; i < group; i += kLanes)
        sum = _mm256_add_ps(sum, _mm256_loadu_ps(to + g * group + i));
      float lanes[kLanes];
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
  return static_cast<uint64_t>(p->m * padded_k<Scheme>(*p) + x_sums) * sizeof(float);
}
template <FloatScheme Scheme>
uint64_t prepared_bytes(const qcts_problem* p) {
  return static_cast<uint64_t>(blocks(*p) * block_bytes<Scheme>(*p));
}

// Writes out[k][column] of a block from rows of k_count bytes that are `ld` bytes apart.
// Takes 128 values of k at a time, so that source and destination stay in L1.
[[maybe_unused]] void transpose_bytes(const uint8_t* rows, int64_t ld, int64_t columns, int64_t k_count,
                                      uint8_t* out) {
  for (int64_t k0 = 0; k0 < k_count; k0 += 128)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = k0; k < k_count && k < k0 + 128; ++k) out[k * kColumns + c] = rows[c * ld + k];
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
  LinearCall call = {problem, static_cast<const uint8_t*>(p.prepared), x, x + p.m * padded_k<Scheme>(p)};
  parallel_for(p.threads, p.m, 8, widen_rows<Scheme>, &call);
  parallel_for(p.threads, blocks(p), 1, multiply_blocks<Scheme>, &call);
}

// Returns an entry whose scales act on finished sums of codes. Only the float32 sums are rounded.
template <const qcts_kernel& kKernel, FloatScheme Scheme>
constexpr qcts_kernel linear_of(const char* scheme, const char* description,
                                qcts_status (*supports)(const qcts_problem*, char*, size_t)) {
  return linear_entry(scheme, "avx2", description, QCTS_F32,
                      {supports, run_supported<kKernel, run_linear<Scheme>>, workspace_bytes<Scheme>,
                       prepared_bytes<Scheme>, prepare_checked<kKernel, pack_weight<Scheme>>});
}

}  // namespace
}  // namespace qcts::avx2
