// SPDX-License-Identifier: BSD-3-Clause
// Macro-kernel of `linear` for the variants that multiply pairs
// of bfloat16 into float32 sums (avx512bf16, avx512vbmi, amx).
// A Scheme defines the layout of a block and decodes its codes to bfloat16. A MicroKernel multiplies.
//
// Codes are exact in bfloat16 (8-bit integers, e4m3 and e2m1 are),
// so a product is rounded only if x had to be rounded.
// Subnormal x and subnormal sums count as 0 (Intel SDM volume 2, VDPBF16PS and TDPBF16PS).
// Scales act on the sums of their group. First, total = fma(scale, sum, total).
// Then, total = fma(zero, sum of x, total) if the scheme has zeros.
// So the result of a row does not depend on m, and nothing depends on the number of threads.
//
// A lane is a column. Packing cuts W into blocks of 64 columns.
// A block holds all values of k of its columns in the order of their use, so a call reads one linear stream.
// Threads get fixed shares of the columns.
#pragma once

#include <concepts>

#include "kernels/avx512/outputs.h"
#include "kernels/families/entry.h"
#include "kernels/machine/weight_reading.h"

namespace qcts::bf16 {
namespace {

using avx512::kColumns;
using avx512::kLanes;

constexpr int kVectors = kColumns / kLanes;
// a group that is a whole row is padded to a multiple of kPadK, with codes that are multiplied by zeros of x
constexpr int64_t kPadK = 8;
// padding; rows that are a power of two apart would share the sets of a cache
constexpr int kRowPadElements = 32;
// One line is prefetched per iteration.
// The distance covers the 400 ns that a line takes under load at 20 GB/s.
// A machine that follows streams itself uses no prefetch.
constexpr int kPrefetchBytes = 8192;

using Sums = float (*)[kColumns];
using Panel = __m512i (*)[kVectors];  // pairs of k by columns

// Positions of weights and of rows of x, computed once per call.
// A function call among the sums would spill all of them to memory,
// even if it only returned the bytes of a dtype.
struct Layout {
  int64_t group, padded_group, groups, blocks;
  int64_t scale_bytes, group_bytes, block_bytes;
  // distance in elements of x from one group to the next, and from one row to the next
  int64_t x_group, x_stride;
};
struct LinearCall {
  const qcts_problem* problem;
  Layout layout;
  const uint8_t* prepared;
  bool prefetches;  // set if the weight is passed over only once
  uint16_t* x;      // [rows][x_stride]
  float* x_sums;    // [rows][k / group]; only if the scheme has zeros
};

// A scheme defines the places of its codes in a block, and how codes become pairs of bfloat16.
// specialize(header, use) calls use() with the scheme, or with a scheme that knows more about this block.
template <class T>
concept PairScheme = requires(const qcts_problem& p, const Layout& layout, const uint8_t* from, uint8_t* to,
                              int64_t n, int vector, int pair, __m512* out) {
  // Codes are stored in steps of kStep values of k. A block has kBytesPerK bytes for each k.
  requires(T::kStep <= kPadK && T::kBytesPerK > 0);
  { T::kHasZeros } -> std::convertible_to<bool>;          // a second vector of scales acts on the sum of x
  { T::kHeaderBytes } -> std::convertible_to<int64_t>;    // size in bytes of a block's header
  { T::scale_bytes(p) } -> std::convertible_to<int64_t>;  // size in bytes of a group's scales
  // Returns the elements along k that share a scale: a multiple of kStep, or all of k.
  { T::group(p) } -> std::convertible_to<int64_t>;
  // decode() returns pair `pair` of the step at `from` for 16 columns.
  // The even k is in the low half of a lane.
  requires sizeof(T::decode(from, from, vector, pair)) == sizeof(__m512i);
  T::scales(p, from, vector, out, out);  // reads the scales of 16 columns, which follow the codes of a group
  T::pack_block(p, layout, n, to);       // packs the block that starts at column n; `to` contains zeros
  // returns a factor for every total, or 1 if there is none
  { T::factor(from) } -> std::convertible_to<float>;
};

// pad_x(padded_group) returns the size to which a group of x is padded with zeros.
template <class T>
concept PadsX = requires(int64_t group) {
  { T::pad_x(group) } -> std::convertible_to<int64_t>;
};

// Multiplies pairs. A micro-kernel also has workspace_bytes<Scheme>(p) and run<Scheme>(p).
template <class T>
concept PairMicroKernel = PadsX<T> && requires(const qcts_problem& p, int64_t m, char* why, size_t why_size) {
  { T::kVariant } -> std::convertible_to<const char*>;
  T::kNumerics;
  { T::takes(p, why, why_size) } -> std::same_as<qcts_status>;  // QCTS_OK if it supports the dtype of x
  // returns the number of rows of x that it reads; rows beyond m are zeros
  { T::padded_rows(m) } -> std::convertible_to<int64_t>;
};

template <PairScheme Scheme, PadsX MicroKernel>
Layout layout_of(const qcts_problem& p) {
  Layout at = {};
  at.group = Scheme::group(p);
  at.padded_group = at.group == p.k ? (at.group + kPadK - 1) / kPadK * kPadK : at.group;
  at.groups = p.k / at.group;
  at.blocks = (p.n + kColumns - 1) / kColumns;
  at.scale_bytes = Scheme::scale_bytes(p);
  at.group_bytes = at.padded_group * Scheme::kBytesPerK + at.scale_bytes;
  at.block_bytes = Scheme::kHeaderBytes + at.groups * at.group_bytes;
  const int64_t pad = MicroKernel::pad_x(at.padded_group);
  at.x_group = (at.padded_group + pad - 1) / pad * pad;
  at.x_stride = at.groups * at.x_group + kRowPadElements;
  return at;
}

// Converts `count` elements of x, at most one vector, to bfloat16.
[[maybe_unused]] __m256i narrow_some(uint32_t dtype, const char* from, int64_t count) {
  if (count < kLanes) return avx512::to_bf16(avx512::load_some(dtype, from, count));
  if (dtype == QCTS_BF16) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return avx512::to_bf16(avx512::load16(dtype, from));
}
// Converts a part of a row of x to bfloat16.
// Returns the sum of the results, which is added up by lanes and then lane by lane.
[[maybe_unused]] float narrow_group(uint32_t dtype, const char* from, int64_t count, uint16_t* to) {
  const int64_t bytes = dtype_bytes(dtype);
  __m512 sums = _mm512_setzero_ps();
  for (int64_t k = 0; k < count; k += kLanes) {
    const int64_t some = count - k < kLanes ? count - k : kLanes;
    const __m256i narrow = narrow_some(dtype, from + k * bytes, some);
    std::memcpy(to + k, &narrow, static_cast<size_t>(2 * some));
    sums = _mm512_add_ps(sums, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16)));
  }
  float lanes[kLanes], total = 0;
  _mm512_storeu_ps(lanes, sums);
  for (float lane : lanes) total += lane;
  return total;
}

// Copies rows of x, pads groups with zeros, and computes the sum of each group of a row.
template <PairScheme Scheme>
void copy_rows(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const qcts_problem& p = *call.problem;
  const Layout& layout = call.layout;
  const int64_t group = layout.group, count = layout.groups, bytes = dtype_bytes(p.x_dtype);
  for (int64_t m = first; m < last; ++m) {
    uint16_t* to = call.x + m * layout.x_stride;
    if (m >= p.m || layout.x_group != group) std::memset(to, 0, static_cast<size_t>(2 * layout.x_stride));
    if (m >= p.m) continue;
    const char* from = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    if (!Scheme::kHasZeros && p.x_dtype == QCTS_BF16 && (count == 1 || layout.x_group == group)) {
      std::memcpy(to, from, static_cast<size_t>(2 * p.k));
      continue;
    }
    for (int64_t g = 0; g < count; ++g) {
      const float sum = narrow_group(p.x_dtype, from + g * group * bytes, group, to + g * layout.x_group);
      if (Scheme::kHasZeros) call.x_sums[m * count + g] = sum;
    }
  }
}

template <PairScheme Scheme, PairMicroKernel MicroKernel>
uint64_t workspace_bytes(const qcts_problem* p) {
  const Layout layout = layout_of<Scheme, MicroKernel>(*p);
  return static_cast<uint64_t>(MicroKernel::padded_rows(p->m) *
                               (layout.x_stride * 2 + (Scheme::kHasZeros ? layout.groups * 4 : 0)));
}
// Packing does not depend on x, so it needs no micro-kernel.
struct NoMicroKernel {
  static int64_t pad_x(int64_t) { return kPadK; }
};
template <PairScheme Scheme>
uint64_t prepared_bytes(const qcts_problem* p) {
  const Layout layout = layout_of<Scheme, NoMicroKernel>(*p);
  return static_cast<uint64_t>(layout.blocks * layout.block_bytes);
}

struct Packing {
  const qcts_problem* problem;
  Layout layout;
  uint8_t* prepared;
};
template <PairScheme Scheme>
void pack_blocks(void* context, int64_t first, int64_t last) {
  const Packing& task = *static_cast<const Packing*>(context);
  for (int64_t block = first; block < last; ++block)
    Scheme::pack_block(*task.problem, task.layout, block * kColumns,
                       task.prepared + block * task.layout.block_bytes);
}
template <PairScheme Scheme>
void pack_weight(const qcts_problem* problem, void* prepared) {
  Packing task = {problem, layout_of<Scheme, NoMicroKernel>(*problem), static_cast<uint8_t*>(prepared)};
  std::memset(prepared, 0, static_cast<size_t>(task.layout.blocks * task.layout.block_bytes));
  parallel_for(problem->threads, task.layout.blocks, 1, pack_blocks<Scheme>, &task);
}

template <PairScheme Scheme, PairMicroKernel MicroKernel>
LinearCall call_of(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  const Layout layout = layout_of<Scheme, MicroKernel>(p);
  auto* x = static_cast<uint16_t*>(p.workspace);
  return {problem,
          layout,
          static_cast<const uint8_t*>(p.prepared),
          weight_reading() != WeightReading::followed,
          x,
          reinterpret_cast<float*>(x + MicroKernel::padded_rows(p.m) * layout.x_stride)};
}

// Accepts only bfloat16 x, which needs no rounding.
[[maybe_unused]] qcts_status takes_bf16(const qcts_problem& p, char* why, size_t why_size) {
  if (p.x_dtype == QCTS_BF16) return QCTS_OK;
  return refuse(QCTS_UNSUPPORTED, why, why_size, "x must be bfloat16");
}
template <const qcts_kernel& kKernel, PairMicroKernel MicroKernel>
qcts_status supports_pairs(const qcts_problem* problem, char* why, size_t why_size) {
  const qcts_status status = check_problem(kKernel, problem, why, why_size);
  return status == QCTS_OK ? MicroKernel::takes(*problem, why, why_size) : status;
}

template <const qcts_kernel& kKernel, PairScheme Scheme, PairMicroKernel MicroKernel>
constexpr qcts_kernel linear_of(const char* scheme, const char* description) {
  return linear_entry(
      scheme, MicroKernel::kVariant, description, MicroKernel::kNumerics,
      {supports_pairs<kKernel, MicroKernel>, run_supported<kKernel, MicroKernel::template run<Scheme>>,
       MicroKernel::template workspace_bytes<Scheme>, prepared_bytes<Scheme>,
       prepare_checked<kKernel, pack_weight<Scheme>>});
}

}  // namespace
}  // namespace qcts::bf16
