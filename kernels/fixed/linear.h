// SPDX-License-Identifier: BSD-3-Clause
// Macro-kernel of `linear` for codes that are small integers,
// with x multiplied in fixed point (avx2, avxvnni, avx512vnni).
// y is the sum over groups of scale * sum(x * (code - offset)) + zero * sum(x), plus bias.
//
// x is not rounded (kernels/fixed/rows.h). Sums of codes times the 16-bit numbers of x are exact integers.
// The few floats that do not fit are multiplied as floats.
// So the result equals the result of float32 sums or is nearer to the true one.
// The result does not depend on m or on the number of threads.
// Every output is its own chain, in the order of k.
// For each part and term, total = fma(scale, step * sum, total),
// and the same for the sum of the leftover floats.
// Then, total = fma(zero, sum of x, total). If the row is one group, its scale is applied last.
//
// A block of 64 columns is one linear stream that begins with a header.
// The codes of each group follow, in steps of 256 bytes. A step holds a few values of k of all columns.
// The scheme's own tail comes after the codes of each group.
#pragma once

#include <concepts>

#include "kernels/avx2/streams.h"
#include "kernels/families/entry.h"
#include "kernels/fixed/sums.h"

namespace qcts::fixed {
namespace {

constexpr int kRows = 64;  // rows of totals at a time
using avx2::kStreams;

using Sums = int32_t (*)[kColumns];

struct Layout {
  int64_t group, padded_group, groups, parts;  // `parts` is the number of parts of a group
  int64_t code_bytes, tail_bytes, group_bytes, block_bytes, blocks;  // the tail follows the codes of a group
  int64_t padded_k() const { return groups * padded_group; }
};
struct LinearCall {
  const qcts_problem* problem;
  Layout layout;
  const uint8_t* prepared;
  FixedRows rows;
  float* x_sums;  // [m][groups]; only if the scheme has zeros
};

// Parameters of the 64 columns of a group.
struct Scales {
  const float *scale, *zero;
};

// Multiplies codes by terms of x.
// multiply_some<M, kAhead, kAdds>(codes, steps, x, sums) multiplies M terms (1 or 2)
// and prefetches kAhead bytes ahead. If kAdds is true, it adds to `sums`.
template <class T>
concept FixedMicroKernel =
    requires(const uint8_t* codes, int64_t steps, const int8_t* const* x, int count, Sums sums) {
      { T::kValues } -> std::convertible_to<FixedValues>;  // form of x that the micro-kernel multiplies
      requires T::kTerms > 0;  // number of terms that the micro-kernel multiplies at a time
      // sets sums[i] to codes times term x[i], for i < count <= kTerms
      T::multiply(codes, steps, x, count, sums);
    };

// A scheme defines the places of its codes in a block.
template <class T>
concept FixedScheme =
    FixedMicroKernel<typename T::MicroKernel> &&
    requires(const qcts_problem& p, const Layout& layout, const uint8_t* from, uint8_t* to, int64_t k, int n,
             int32_t times, typename T::Buffer& buffer) {
      requires 8 % T::kStepK == 0;                    // values of k in a step
      { T::kHasZeros } -> std::convertible_to<bool>;  // zeros act on the sum of x
      // the row is one group, and its scales act on the totals
      { T::kLateScales } -> std::convertible_to<bool>;
      requires sizeof(T::offsets(from, n)) == sizeof(__m256i);               // offsets of 8 columns, int32
      requires sizeof(T::minus_offsets(from, n, times)) == sizeof(__m256i);  // returns -times * offset
      // elements that share a scale: a multiple of 8, or all of k
      { T::group(p) } -> std::convertible_to<int64_t>;
      { T::kHeaderBytes } -> std::convertible_to<int64_t>;  // size in bytes of a block's header
      // size in bytes of the tail after a group's codes
      { T::tail_bytes(p) } -> std::convertible_to<int64_t>;
      // returns the scales of a group from the header and the tail
      { T::scales(p, from, from, buffer) } -> std::same_as<Scales>;
      requires sizeof(T::codes(from, k, n)) == sizeof(__m256i);  // element k of a step for 8 columns, int32
      T::pack_block(p, layout, k, to);  // packs the block that starts at column k; `to` contains zeros
    };

template <FixedScheme Scheme>
Layout layout_of(const qcts_problem& p) {
  Layout at = {};
  at.group = Scheme::group(p);
  at.padded_group = (at.group + kLanes - 1) / kLanes * kLanes;
  at.groups = p.k / at.group;
  at.parts = (at.padded_group + avx2::kPartK - 1) / avx2::kPartK;
  at.code_bytes = at.padded_group / Scheme::kStepK * kStepBytes;
  at.tail_bytes = Scheme::tail_bytes(p);
  at.group_bytes = at.code_bytes + at.tail_bytes;
  at.block_bytes = Scheme::kHeaderBytes + at.groups * at.group_bytes;
  at.blocks = (p.n + kColumns - 1) / kColumns;
  return at;
}

// Number of bytes to prefetch before the epilogue of a part of one row, so that memory stays busy.
// int8 of 4096 x 4096 cold at m = 1 took 530 us with this prefetch
// and 580 us without it (VPDPBUSD, EPYC Zen 4, one thread). Twice as many bytes are slower again.
// int4 does not change, because its epilogues are as frequent as such prefetches could be.
constexpr int kEpiloguePrefetchBytes = 1024;

// Collects terms of several rows and multiplies them together by the codes of one part.
template <FixedScheme Scheme>
class Terms {
 public:
  Terms(const uint8_t* header, const float* scale, const uint8_t* codes, int64_t steps, bool prefetches,
        float (*totals)[kColumns])
      : header_(header),
        scale_(scale),
        codes_(codes),
        steps_(steps),
        prefetches_(prefetches),
        totals_(totals) {}

  void add(const int8_t* x, int32_t sum, float step, int64_t row) {
    x_[count_] = x;
    sum_of_v_[count_] = sum;
    step_[count_] = step;
    row_[count_] = row;
    if (++count_ == MicroKernel::kTerms) finish();
  }
  void finish() {
    if (count_ == 0) return;
    MicroKernel::multiply(codes_, steps_, x_, count_, sums_);
    for (int line = 0; prefetches_ && line < kEpiloguePrefetchBytes; line += 64)
      avx2::prefetch(codes_ + steps_ * kStepBytes + line, avx2::kPrefetchBytes);
    for (int i = 0; i < count_; ++i)
      term_epilogue<Scheme>(header_, scale_, step_[i], sum_of_v_[i], sums_[i], totals_[row_[i]]);
    count_ = 0;
  }

 private:
  using MicroKernel = typename Scheme::MicroKernel;
  const uint8_t* header_;
  const float* scale_;
  const uint8_t* codes_;
  int64_t steps_;
  bool prefetches_;
  float (*totals_)[kColumns];
  int count_ = 0;
  const int8_t* x_[MicroKernel::kTerms];
  int32_t sum_of_v_[MicroKernel::kTerms];
  float step_[MicroKernel::kTerms];
  int64_t row_[MicroKernel::kTerms];
  alignas(64) int32_t sums_[MicroKernel::kTerms][kColumns];
};

// Part `index`, counted over all groups. It has `count` values of k, starting at `at` in the rows of x.
struct Part {
  const uint8_t* codes;
  int64_t index, at, count;
};
template <FixedScheme Scheme>
Part part_of(const Layout& layout, const uint8_t* codes, int64_t group, int64_t part) {
  const int64_t k = part * avx2::kPartK;
  return {codes + k / Scheme::kStepK * kStepBytes, group * layout.parts + part,
          group * layout.padded_group + k, std::min(layout.padded_group - k, avx2::kPartK)};
}

template <FixedScheme Scheme>
void multiply_part(const LinearCall& call, const uint8_t* header, const float* scale, const Part& part,
                   int64_t first_m, int64_t rows, float (*totals)[kColumns]) {
  const FixedRows& x = call.rows;
  const FixedPart* fixed = x.part + first_m * x.parts + part.index;
  const bool prefetches = Scheme::kLateScales && rows == 1 && weight_reading() != WeightReading::followed;
  Terms<Scheme> terms(header, scale, part.codes, part.count / Scheme::kStepK, prefetches, totals);
  bool some_left = false;
  for (int64_t m = 0; m < rows; ++m) {
    const FixedPart& of = fixed[m * x.parts];
    for (int t = 0; t < of.terms; ++t) terms.add(x.term(first_m + m, t, part.at), of.sum[t], of.step[t], m);
    some_left |= of.left > 0;
  }
  terms.finish();
  for (int64_t m = 0; some_left && m < rows; ++m) {
    const int64_t from = (first_m + m) * x.k + part.at;
    if (fixed[m * x.parts].left > 0)
      leftover_epilogue<Scheme>(header, scale, part.codes, x.left + from, x.left_at + from,
                                fixed[m * x.parts].left, totals[m]);
  }
}

template <FixedScheme Scheme>
void multiply_block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
  const qcts_problem& p = *call.problem;
  const Layout& layout = call.layout;
  alignas(64) float totals[kRows][kColumns];
  typename Scheme::Buffer buffer;
  Scales scales = {};
  std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* header = call.prepared + block * layout.block_bytes;
  const uint8_t* codes = header + Scheme::kHeaderBytes;
  for (int64_t g = 0; g < layout.groups; ++g, codes += layout.group_bytes) {
    scales = Scheme::scales(p, header, codes + layout.code_bytes, buffer);
    // Prefetches the tail as far ahead as the codes of several rows, or the codes of one row of int4.
    // int8 has one tail for a whole block.
    for (int64_t line = 0; line < layout.tail_bytes; line += 64)
      avx2::prefetch(codes + layout.code_bytes + line, avx2::kFarBytes);
    for (int64_t i = 0; i < layout.parts; ++i)
      multiply_part<Scheme>(call, header, scales.scale, part_of<Scheme>(layout, codes, g, i), first_m, rows,
                            totals);
    for (int64_t m = 0; m < rows; ++m)
      group_epilogue<Scheme>(scales.zero, call.x_sums + (first_m + m) * layout.groups + g, totals[m]);
  }
  for (int64_t m = 0; m < rows; ++m) row_epilogue<Scheme>(scales.scale, totals[m]);
  avx2::store_rows(p, first_m, rows, block * kColumns, 1, totals);
}

// State of the blocks by which one row of x is multiplied side by side (kernels/avx2/streams.h).
// On one thread of an EPYC Zen 3, int4 g128 of 4096 x 4096 from memory takes 472 us.
// If one block follows the other, prefetched 4 KiB ahead, it takes 640 us.
template <FixedScheme Scheme>
struct SideBySide {
  const uint8_t *header, *codes;  // `header` of the first block; `codes` of the current group
  int64_t apart;                  // distance of the blocks in bytes
  typename Scheme::Buffer buffers[kStreams];
  // scales of the current group; read after its codes, which come before them in memory
  Scales scales[kStreams];
  alignas(64) float totals[kStreams][kColumns];
};

// Multiplies one or two terms of a row.
template <FixedMicroKernel MicroKernel, int kAhead>
void multiply_row(const uint8_t* codes, int64_t steps, const int8_t* const* x, int count, bool adds,
                  Sums sums) {
  constexpr decltype(&MicroKernel::template multiply_some<1, kAhead, false>) kExactly[2][2] = {
      {MicroKernel::template multiply_some<1, kAhead, false>,
       MicroKernel::template multiply_some<1, kAhead, true>},
      {MicroKernel::template multiply_some<2, kAhead, false>,
       MicroKernel::template multiply_some<2, kAhead, true>}};
  kExactly[count - 1][adds](codes, steps, x, sums);
}

template <FixedScheme Scheme>
void multiply_part_of_row(const LinearCall& call, const Part& part, SideBySide<Scheme>& at) {
  constexpr int64_t kTurn = avx2::kStreamBytes / kStepBytes;
  const FixedRows& x = call.rows;
  const FixedPart& fixed = x.part[part.index];
  alignas(64) int32_t sums[kStreams][2][kColumns];
  const int64_t steps = part.count / Scheme::kStepK;
  for (int64_t step = 0; fixed.terms > 0 && step < steps; step += kTurn) {
    const int64_t k = part.at + step * Scheme::kStepK;
    const int8_t* terms[2] = {x.term(0, 0, k), x.term(0, 1, k)};
    for (int s = 0; s < kStreams; ++s)
      multiply_row<typename Scheme::MicroKernel, avx2::kStreamPrefetchBytes>(
          part.codes + s * at.apart + step * kStepBytes, std::min(steps - step, kTurn), terms, fixed.terms,
          step > 0, sums[s]);
  }
  for (int s = 0; s < kStreams; ++s) {
    const uint8_t* header = at.header + s * at.apart;
    const uint8_t* tail = at.codes + s * at.apart + call.layout.code_bytes;
    at.scales[s] = Scheme::scales(*call.problem, header, tail, at.buffers[s]);
    for (int t = 0; t < fixed.terms; ++t)
      term_epilogue<Scheme>(header, at.scales[s].scale, fixed.step[t], fixed.sum[t], sums[s][t],
                            at.totals[s]);
    if (fixed.left > 0)
      leftover_epilogue<Scheme>(header, at.scales[s].scale, part.codes + s * at.apart, x.left + part.at,
                                x.left_at + part.at, fixed.left, at.totals[s]);
  }
}

template <FixedScheme Scheme>
void multiply_side_by_side(const LinearCall& call, int64_t block, int64_t blocks_apart) {
  const Layout& layout = call.layout;
  SideBySide<Scheme> at;
  at.header = call.prepared + block * layout.block_bytes;
  at.codes = at.header + Scheme::kHeaderBytes;
  at.apart = blocks_apart * layout.block_bytes;
  std::memset(at.totals, 0, sizeof at.totals);
  for (int64_t g = 0; g < layout.groups; ++g, at.codes += layout.group_bytes) {
    for (int64_t i = 0; i < layout.parts; ++i)
      multiply_part_of_row(call, part_of<Scheme>(layout, at.codes, g, i), at);
    for (int s = 0; s < kStreams; ++s) {
      for (int64_t line = 0; line < layout.tail_bytes; line += 64)
        avx2::prefetch(at.codes + s * at.apart + layout.code_bytes + line, avx2::kStreamPrefetchBytes);
      group_epilogue<Scheme>(at.scales[s].zero, call.x_sums + g, at.totals[s]);
    }
  }
  for (int s = 0; s < kStreams; ++s) {
    row_epilogue<Scheme>(at.scales[s].scale, at.totals[s]);
    avx2::store_rows(*call.problem, 0, 1, (block + s * blocks_apart) * kColumns, 1, at.totals + s);
  }
}

template <FixedScheme Scheme>
void multiply_blocks(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const int64_t m_count = call.problem->m;
  const auto alone = [&](int64_t block) {
    for (int64_t m = 0; m < m_count; m += kRows)
      multiply_block<Scheme>(call, block, m, std::min<int64_t>(m_count - m, kRows));
  };
  if (m_count == 1)
    return avx2::in_streams(
        first, last, [&](int64_t block, int64_t apart) { multiply_side_by_side<Scheme>(call, block, apart); },
        alone);
  for (int64_t block = first; block < last; ++block) alone(block);
}

// Converts rows of x to fixed point, part by part, and computes the sum of each group.
template <FixedScheme Scheme>
void fix_rows(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const qcts_problem& p = *call.problem;
  const Layout& layout = call.layout;
  const FixedRows& rows = call.rows;
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    for (int64_t g = 0; g < layout.groups; ++g) {
      float sum = 0;
      for (int64_t i = 0; i < layout.parts; ++i) {
        const int64_t k = i * avx2::kPartK, index = g * layout.parts + i, at = g * layout.padded_group + k;
        avx2::fix_part<Scheme::MicroKernel::kValues>(rows, p.x_dtype, row, m, index, at,
                                                     std::min(layout.group - k, avx2::kPartK));
        if (!Scheme::kHasZeros) continue;
        const FixedPart& part = rows.part[m * rows.parts + index];
        for (int t = 0; t < part.terms; ++t) sum += part.step[t] * static_cast<float>(part.sum[t]);
        for (int l = 0; l < part.left; ++l) sum += rows.left[m * rows.k + at + l];
      }
      if (Scheme::kHasZeros) call.x_sums[m * layout.groups + g] = sum;
    }
  }
}

template <FixedScheme Scheme>
int64_t x_sum_count(const qcts_problem& p, const Layout& layout) {
  return Scheme::kHasZeros ? p.m * layout.groups : 0;
}
template <FixedScheme Scheme>
uint64_t workspace_bytes(const qcts_problem* p) {
  const Layout layout = layout_of<Scheme>(*p);
  return avx2::fixed_rows_bytes(p->m, layout.padded_k(), layout.groups * layout.parts) +
         static_cast<uint64_t>(x_sum_count<Scheme>(*p, layout)) * sizeof(float);
}
template <FixedScheme Scheme>
uint64_t prepared_bytes(const qcts_problem* p) {
  const Layout layout = layout_of<Scheme>(*p);
  return static_cast<uint64_t>(layout.blocks * layout.block_bytes);
}

struct Packing {
  const qcts_problem* problem;
  Layout layout;
  uint8_t* prepared;
};
template <FixedScheme Scheme>
void pack_blocks(void* context, int64_t first, int64_t last) {
  const Packing& task = *static_cast<const Packing*>(context);
  for (int64_t block = first; block < last; ++block)
    Scheme::pack_block(*task.problem, task.layout, block * kColumns,
                       task.prepared + block * task.layout.block_bytes);
}
template <FixedScheme Scheme>
void pack_weight(const qcts_problem* problem, void* prepared) {
  std::memset(prepared, 0, prepared_bytes<Scheme>(problem));
  Packing task = {problem, layout_of<Scheme>(*problem), static_cast<uint8_t*>(prepared)};
  parallel_for(problem->threads, task.layout.blocks, 1, pack_blocks<Scheme>, &task);
}

template <FixedScheme Scheme>
void run_linear(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  const Layout layout = layout_of<Scheme>(p);
  auto* x_sums = static_cast<float*>(p.workspace);
  LinearCall call = {problem, layout, static_cast<const uint8_t*>(p.prepared),
                     avx2::fixed_rows_at(x_sums + x_sum_count<Scheme>(p, layout), p.m, layout.padded_k(),
                                         layout.groups * layout.parts),
                     x_sums};
  parallel_for(p.threads, p.m, 4, fix_rows<Scheme>, &call);
  parallel_for(p.threads, layout.blocks, 1, multiply_blocks<Scheme>, &call);
}

template <const qcts_kernel& kKernel, FixedScheme Scheme>
constexpr qcts_kernel linear_of(const char* scheme, const char* variant, const char* description) {
  return linear_entry(
      scheme, variant, description, QCTS_F32,
      {supports_problem<kKernel>, run_checked<kKernel, run_linear<Scheme>>, workspace_bytes<Scheme>,
       prepared_bytes<Scheme>, prepare_checked<kKernel, pack_weight<Scheme>>});
}

}  // namespace
}  // namespace qcts::fixed
