// SPDX-License-Identifier: BSD-3-Clause
// The frame of `linear` for codes that are small integers, where a variant multiplies x in fixed point (avx2,
// avxvnni, avx512vnni). y = sum over groups of scale * sum(x * (code - offset)) + zero * sum(x), plus bias.
//
// x is kept as it is (kernels/fixed/rows.h): sums of codes times its 16-bit numbers are exact integers, and
// what few floats are left are multiplied as such. So the result is the one of float32 sums or nearer to the
// true one, and does not depend on m or on the number of threads: every output is a chain of its own, in the
// order of k: part by part total = fma(scale, step * sum, total) for each term, and the same of the sum of
// the floats left, then total = fma(zero, sum of x, total). Where the row is one group its scale comes last.
//
// A block of 64 columns is one linear stream: a header, then for each group its codes, in steps of 256 bytes
// that hold some k of all columns, and what the scheme has behind them.
#pragma once

#include <concepts>

#include "kernels/avx2/streams.h"
#include "kernels/families/entry.h"
#include "kernels/fixed/sums.h"

namespace qcts::fixed {
namespace {

constexpr int kRows = 64;  // of totals at a time
using avx2::kStreams;

using Sums = int32_t (*)[kColumns];

struct Layout {
  int64_t group, padded_group, groups, parts;                        // parts of a group
  int64_t code_bytes, tail_bytes, group_bytes, block_bytes, blocks;  // tail_bytes: behind a group's codes
  int64_t padded_k() const { return groups * padded_group; }
};
struct Frame {
  const qcts_problem* problem;
  Layout layout;
  const uint8_t* prepared;
  FixedRows rows;
  float* x_sums;  // [m][groups], only where the scheme has zeros
};

// Of 64 columns of a group.
struct Scales {
  const float *scale, *zero;
};

// What multiplies codes by terms of x. multiply_some<M, kAhead, kAdds>(codes, steps, x, sums) multiplies M
// terms, 1 or 2, while what lies kAhead bytes ahead is fetched; sums += where it adds.
template <class T>
concept FixedEngine =
    requires(const uint8_t* codes, int64_t steps, const int8_t* const* x, int count, Sums sums) {
      { T::kValues } -> std::convertible_to<FixedValues>;  // of x that it multiplies
      requires T::kTerms > 0;                              // that it multiplies at a time
      T::multiply(codes, steps, x, count, sums);  // sums[i] = codes times term x[i], of `count` <= kTerms
    };

// How the codes of a scheme lie in a block.
template <class T>
concept FixedScheme =
    FixedEngine<typename T::Engine> &&
    requires(const qcts_problem& p, const Layout& layout, const uint8_t* from, uint8_t* to, int64_t k, int n,
             int32_t times, typename T::Buffer& buffer) {
      requires 8 % T::kStepK == 0;                      // k of a step
      { T::kHasZeros } -> std::convertible_to<bool>;    // zeros act on the sum of x
      { T::kLateScales } -> std::convertible_to<bool>;  // the row is one group, its scales act on the totals
      requires sizeof(T::offsets(from, n)) == sizeof(__m256i);               // of 8 columns, int32
      requires sizeof(T::minus_offsets(from, n, times)) == sizeof(__m256i);  // -times * offset
      { T::group(p) } -> std::convertible_to<int64_t>;  // that share a scale: a multiple of 8, or all of k
      { T::kHeaderBytes } -> std::convertible_to<int64_t>;           // before a block's codes
      { T::tail_bytes(p) } -> std::convertible_to<int64_t>;          // behind a group's codes
      { T::scales(p, from, from, buffer) } -> std::same_as<Scales>;  // of a group, from header and tail
      requires sizeof(T::codes(from, k, n)) == sizeof(__m256i);      // element k of a step, 8 columns, int32
      T::prepare_block(p, layout, k, to);                            // the block from column k on, over zeros
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

// What memory brings while a part of one row is closed, asked for before: int8, m = 1, 4096 x 4096 cold, EPYC
// Zen 4, one thread, with VPDPBUSD 580 us without it, 530. Twice as much is slower again, and of int4, which
// closes as often as it can be asked for, nothing changes.
constexpr int kClosingBytes = 1024;

// Terms of several rows that meet the codes of one part together.
template <FixedScheme Scheme>
class Terms {
 public:
  Terms(const uint8_t* header, const float* scale, const uint8_t* codes, int64_t steps, bool asks_ahead,
        float (*totals)[kColumns])
      : header_(header),
        scale_(scale),
        codes_(codes),
        steps_(steps),
        asks_ahead_(asks_ahead),
        totals_(totals) {}

  void add(const int8_t* x, int32_t sum, float step, int64_t row) {
    x_[count_] = x;
    sum_of_v_[count_] = sum;
    step_[count_] = step;
    row_[count_] = row;
    if (++count_ == Engine::kTerms) finish();
  }
  void finish() {
    if (count_ == 0) return;
    Engine::multiply(codes_, steps_, x_, count_, sums_);
    for (int line = 0; asks_ahead_ && line < kClosingBytes; line += 64)
      avx2::prefetch(codes_ + steps_ * kStepBytes + line, avx2::kPrefetchBytes);
    for (int i = 0; i < count_; ++i)
      close_term<Scheme>(header_, scale_, step_[i], sum_of_v_[i], sums_[i], totals_[row_[i]]);
    count_ = 0;
  }

 private:
  using Engine = typename Scheme::Engine;
  const uint8_t* header_;
  const float* scale_;
  const uint8_t* codes_;
  int64_t steps_;
  bool asks_ahead_;
  float (*totals_)[kColumns];
  int count_ = 0;
  const int8_t* x_[Engine::kTerms];
  int32_t sum_of_v_[Engine::kTerms];
  float step_[Engine::kTerms];
  int64_t row_[Engine::kTerms];
  alignas(64) int32_t sums_[Engine::kTerms][kColumns];
};

// Part `index` of all, `count` k from `at` on in the rows of x.
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
void multiply_part(const Frame& frame, const uint8_t* header, const float* scale, const Part& part,
                   int64_t first_m, int64_t rows, float (*totals)[kColumns]) {
  const FixedRows& x = frame.rows;
  const FixedPart* fixed = x.part + first_m * x.parts + part.index;
  const bool asks_ahead = Scheme::kLateScales && rows == 1 && weight_reading() != WeightReading::followed;
  Terms<Scheme> terms(header, scale, part.codes, part.count / Scheme::kStepK, asks_ahead, totals);
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
      close_left<Scheme>(header, scale, part.codes, x.left + from, x.left_at + from, fixed[m * x.parts].left,
                         totals[m]);
  }
}

template <FixedScheme Scheme>
void multiply_block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
  const qcts_problem& p = *frame.problem;
  const Layout& layout = frame.layout;
  alignas(64) float totals[kRows][kColumns];
  typename Scheme::Buffer buffer;
  Scales scales = {};
  std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* header = frame.prepared + block * layout.block_bytes;
  const uint8_t* codes = header + Scheme::kHeaderBytes;
  for (int64_t g = 0; g < layout.groups; ++g, codes += layout.group_bytes) {
    scales = Scheme::scales(p, header, codes + layout.code_bytes, buffer);
    // As far ahead as codes of several rows, and int4's of one; int8 has one tail for a whole block.
    for (int64_t line = 0; line < layout.tail_bytes; line += 64)
      avx2::prefetch(codes + layout.code_bytes + line, avx2::kFarBytes);
    for (int64_t i = 0; i < layout.parts; ++i)
      multiply_part<Scheme>(frame, header, scales.scale, part_of<Scheme>(layout, codes, g, i), first_m, rows,
                            totals);
    for (int64_t m = 0; m < rows; ++m)
      close_group<Scheme>(scales.zero, frame.x_sums + (first_m + m) * layout.groups + g, totals[m]);
  }
  for (int64_t m = 0; m < rows; ++m) close_row<Scheme>(scales.scale, totals[m]);
  avx2::store_rows(p, first_m, rows, block * kColumns, 1, totals);
}

// Blocks that one row of x meets side by side (kernels/avx2/streams.h): int4 g128, 4096 x 4096 from memory,
// EPYC Zen 3, one thread, 472 us; one block after the other, asked for 4 KiB ahead, 640.
template <FixedScheme Scheme>
struct SideBySide {
  const uint8_t *header, *codes;  // of the first; codes of a group
  int64_t apart;                  // bytes
  typename Scheme::Buffer buffers[kStreams];
  Scales scales[kStreams];  // of the group, once its codes have been read: they lie behind them
  alignas(64) float totals[kStreams][kColumns];
};

// One or two terms of a row.
template <FixedEngine Engine, int kAhead>
void multiply_row(const uint8_t* codes, int64_t steps, const int8_t* const* x, int count, bool adds,
                  Sums sums) {
  constexpr decltype(&Engine::template multiply_some<1, kAhead, false>) kExactly[2][2] = {
      {Engine::template multiply_some<1, kAhead, false>, Engine::template multiply_some<1, kAhead, true>},
      {Engine::template multiply_some<2, kAhead, false>, Engine::template multiply_some<2, kAhead, true>}};
  kExactly[count - 1][adds](codes, steps, x, sums);
}

template <FixedScheme Scheme>
void multiply_part_of_row(const Frame& frame, const Part& part, SideBySide<Scheme>& at) {
  constexpr int64_t kTurn = avx2::kStreamBytes / kStepBytes;
  const FixedRows& x = frame.rows;
  const FixedPart& fixed = x.part[part.index];
  alignas(64) int32_t sums[kStreams][2][kColumns];
  const int64_t steps = part.count / Scheme::kStepK;
  for (int64_t step = 0; fixed.terms > 0 && step < steps; step += kTurn) {
    const int64_t k = part.at + step * Scheme::kStepK;
    const int8_t* terms[2] = {x.term(0, 0, k), x.term(0, 1, k)};
    for (int s = 0; s < kStreams; ++s)
      multiply_row<typename Scheme::Engine, avx2::kStreamPrefetchBytes>(
          part.codes + s * at.apart + step * kStepBytes, std::min(steps - step, kTurn), terms, fixed.terms,
          step > 0, sums[s]);
  }
  for (int s = 0; s < kStreams; ++s) {
    const uint8_t* header = at.header + s * at.apart;
    const uint8_t* tail = at.codes + s * at.apart + frame.layout.code_bytes;
    at.scales[s] = Scheme::scales(*frame.problem, header, tail, at.buffers[s]);
    for (int t = 0; t < fixed.terms; ++t)
      close_term<Scheme>(header, at.scales[s].scale, fixed.step[t], fixed.sum[t], sums[s][t], at.totals[s]);
    if (fixed.left > 0)
      close_left<Scheme>(header, at.scales[s].scale, part.codes + s * at.apart, x.left + part.at,
                         x.left_at + part.at, fixed.left, at.totals[s]);
  }
}

template <FixedScheme Scheme>
void multiply_side_by_side(const Frame& frame, int64_t block, int64_t blocks_apart) {
  const Layout& layout = frame.layout;
  SideBySide<Scheme> at;
  at.header = frame.prepared + block * layout.block_bytes;
  at.codes = at.header + Scheme::kHeaderBytes;
  at.apart = blocks_apart * layout.block_bytes;
  std::memset(at.totals, 0, sizeof at.totals);
  for (int64_t g = 0; g < layout.groups; ++g, at.codes += layout.group_bytes) {
    for (int64_t i = 0; i < layout.parts; ++i)
      multiply_part_of_row(frame, part_of<Scheme>(layout, at.codes, g, i), at);
    for (int s = 0; s < kStreams; ++s) {
      for (int64_t line = 0; line < layout.tail_bytes; line += 64)
        avx2::prefetch(at.codes + s * at.apart + layout.code_bytes + line, avx2::kStreamPrefetchBytes);
      close_group<Scheme>(at.scales[s].zero, frame.x_sums + g, at.totals[s]);
    }
  }
  for (int s = 0; s < kStreams; ++s) {
    close_row<Scheme>(at.scales[s].scale, at.totals[s]);
    avx2::store_rows(*frame.problem, 0, 1, (block + s * blocks_apart) * kColumns, 1, at.totals + s);
  }
}

template <FixedScheme Scheme>
void multiply_blocks(void* context, int64_t first, int64_t last) {
  const Frame& frame = *static_cast<const Frame*>(context);
  const int64_t m_count = frame.problem->m;
  const auto alone = [&](int64_t block) {
    for (int64_t m = 0; m < m_count; m += kRows)
      multiply_block<Scheme>(frame, block, m, std::min<int64_t>(m_count - m, kRows));
  };
  if (m_count == 1)
    return avx2::in_streams(
        first, last,
        [&](int64_t block, int64_t apart) { multiply_side_by_side<Scheme>(frame, block, apart); }, alone);
  for (int64_t block = first; block < last; ++block) alone(block);
}

// Parts of rows, and the sum of each group.
template <FixedScheme Scheme>
void fix_rows(void* context, int64_t first, int64_t last) {
  const Frame& frame = *static_cast<const Frame*>(context);
  const qcts_problem& p = *frame.problem;
  const Layout& layout = frame.layout;
  const FixedRows& rows = frame.rows;
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    for (int64_t g = 0; g < layout.groups; ++g) {
      float sum = 0;
      for (int64_t i = 0; i < layout.parts; ++i) {
        const int64_t k = i * avx2::kPartK, index = g * layout.parts + i, at = g * layout.padded_group + k;
        avx2::fix_part<Scheme::Engine::kValues>(rows, p.x_dtype, row, m, index, at,
                                                std::min(layout.group - k, avx2::kPartK));
        if (!Scheme::kHasZeros) continue;
        const FixedPart& part = rows.part[m * rows.parts + index];
        for (int t = 0; t < part.terms; ++t) sum += part.step[t] * static_cast<float>(part.sum[t]);
        for (int l = 0; l < part.left; ++l) sum += rows.left[m * rows.k + at + l];
      }
      if (Scheme::kHasZeros) frame.x_sums[m * layout.groups + g] = sum;
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

struct Preparation {
  const qcts_problem* problem;
  Layout layout;
  uint8_t* prepared;
};
template <FixedScheme Scheme>
void prepare_blocks(void* context, int64_t first, int64_t last) {
  const Preparation& task = *static_cast<const Preparation*>(context);
  for (int64_t block = first; block < last; ++block)
    Scheme::prepare_block(*task.problem, task.layout, block * kColumns,
                          task.prepared + block * task.layout.block_bytes);
}
template <FixedScheme Scheme>
void prepare_weight(const qcts_problem* problem, void* prepared) {
  std::memset(prepared, 0, prepared_bytes<Scheme>(problem));
  Preparation task = {problem, layout_of<Scheme>(*problem), static_cast<uint8_t*>(prepared)};
  parallel_for(problem->threads, task.layout.blocks, 1, prepare_blocks<Scheme>, &task);
}

template <FixedScheme Scheme>
void run_linear(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  const Layout layout = layout_of<Scheme>(p);
  auto* x_sums = static_cast<float*>(p.workspace);
  Frame frame = {problem, layout, static_cast<const uint8_t*>(p.prepared),
                 avx2::fixed_rows_at(x_sums + x_sum_count<Scheme>(p, layout), p.m, layout.padded_k(),
                                     layout.groups * layout.parts),
                 x_sums};
  parallel_for(p.threads, p.m, 4, fix_rows<Scheme>, &frame);
  parallel_for(p.threads, layout.blocks, 1, multiply_blocks<Scheme>, &frame);
}

template <const qcts_kernel& kKernel, FixedScheme Scheme>
constexpr qcts_kernel linear_of(const char* scheme, const char* variant, const char* description) {
  return linear_entry(
      scheme, variant, description, QCTS_F32,
      {supports_problem<kKernel>, run_checked<kKernel, run_linear<Scheme>>, workspace_bytes<Scheme>,
       prepared_bytes<Scheme>, prepare_checked<kKernel, prepare_weight<Scheme>>});
}

}  // namespace
}  // namespace qcts::fixed
