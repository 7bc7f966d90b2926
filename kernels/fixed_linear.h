// The frame of `linear` for codes of four bits with a scale and a floating zero a group, where a variant
// multiplies bytes (avx2, avxvnni), and for nothing else: every function has internal linkage.
// y = sum over groups of scale * sum(x * (u - 8)) + zero * sum(x), plus bias, u from 0 to 15.
//
// x is kept as it is (kernels/fixed_rows.h): sums of u times its 16-bit numbers are exact integers, and what
// few floats are left are multiplied as such. So the result is the one of float32 sums or nearer to the true
// one, and does not depend on m or on the number of threads: every output is a chain of its own,
// total = fma(scale, step * sum, total) part by part, then total = fma(zero, sum of x, total).
//
// A block of 64 columns is one linear stream: for each group its codes, in steps of 256 bytes that hold 8 k
// of all columns, then 64 scales and 64 zeros in the weight's dtype. 4 bytes are a column: its k 0 to 3 in
// the low nibbles, 4 to 7 in the high ones.
#pragma once

#include "kernels/avx2_outputs.h"
#include "kernels/avx2_streams.h"
#include "kernels/entry.h"
#include "kernels/fixed_rows.h"

namespace qcts::fixed {
namespace {

using avx2::FixedPart;
using avx2::FixedRows;
using avx2::kColumns;
using avx2::kLanes;
using avx2::kVectors;

constexpr int kStepK = 8, kStepBytes = kStepK * kColumns / 2;
constexpr int kRows = 64;  // of totals at a time

using Sums = int32_t (*)[kColumns];

struct Layout {
  int64_t group, groups, parts;                          // parts of a group
  int64_t code_bytes, scale_bytes, group_bytes, blocks;  // scale_bytes: of 64
};
struct Frame {
  const qcts_problem* problem;
  Layout layout;
  const uint8_t* prepared;
  FixedRows rows;
  float* x_sums;  // [m][groups]
};

// An Engine has
//   kTerms                                   that it multiplies at a time
//   multiply(codes, steps, x, count, sums)   sums[i] += codes times term x[i], of `count` <= kTerms
//   multiply_one<kAhead>(codes, steps, x, sum)   the same of one; what lies kAhead bytes ahead is fetched
// A Source is one of kernels/int4_planes.h.
[[maybe_unused]] Layout layout_of(const qcts_problem& p) {
  Layout at = {};
  at.group = p.group;
  at.groups = p.k / p.group;
  at.parts = (p.group + avx2::kPartK - 1) / avx2::kPartK;
  at.code_bytes = p.group / kStepK * kStepBytes;
  at.scale_bytes = kColumns * dtype_bytes(p.w_dtype);
  at.group_bytes = at.code_bytes + 2 * at.scale_bytes;
  at.blocks = (p.n + kColumns - 1) / kColumns;
  return at;
}

// Of one group, for all rows.
struct Scales {
  alignas(32) float scale[kColumns], zero[kColumns];
};

[[maybe_unused]] void widen(const Frame& frame, const uint8_t* at, Scales* scales) {
  avx2::widen_scales(frame.problem->w_dtype, at, scales->scale);
  avx2::widen_scales(frame.problem->w_dtype, at + frame.layout.scale_bytes, scales->zero);
}

// What makes sums of v * u those of v * (u - 8).
[[maybe_unused]] void open_term(int32_t sum_of_v, int32_t* sum) {
  const __m256i start = _mm256_set1_epi32(-8 * sum_of_v);
#pragma GCC unroll 8
  for (int n = 0; n < kColumns; n += kLanes) _mm256_storeu_si256(reinterpret_cast<__m256i*>(sum + n), start);
}

// total += scale * (step * sum)
[[maybe_unused]] void close_term(const Scales& scales, float step, const int32_t* sum, float* total) {
  const __m256 steps = _mm256_set1_ps(step);
#pragma GCC unroll 8
  for (int n = 0; n < kColumns; n += kLanes) {
    const __m256i whole = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sum + n));
    const __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(whole), steps);
    _mm256_storeu_ps(total + n,
                     _mm256_fmadd_ps(_mm256_load_ps(scales.scale + n), value, _mm256_loadu_ps(total + n)));
  }
}

// total += scale * (the sum of what is left of a part)
[[maybe_unused]] void close_left(const Scales& scales, const uint8_t* codes, const float* left,
                                 const uint8_t* left_at, int count, float* total) {
  __m256 sums[kVectors] = {};
  for (int i = 0; i < count; ++i) {
    const int k = left_at[i];
    const uint8_t* at = codes + k / kStepK * kStepBytes;
    const __m128i shift = _mm_cvtsi32_si128(8 * (k % 4) + 4 * (k / 4 % 2));
    const __m256 x = _mm256_set1_ps(left[i]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + v * 4 * kLanes));
      const __m256i code = _mm256_and_si256(_mm256_srl_epi32(bytes, shift), _mm256_set1_epi32(15));
      sums[v] = _mm256_fmadd_ps(x, _mm256_cvtepi32_ps(_mm256_sub_epi32(code, _mm256_set1_epi32(8))), sums[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    float* to = total + v * kLanes;
    _mm256_storeu_ps(
        to, _mm256_fmadd_ps(_mm256_load_ps(scales.scale + v * kLanes), sums[v], _mm256_loadu_ps(to)));
  }
}

[[maybe_unused]] void close_group(const Scales& scales, float x_sum, float* total) {
  const __m256 sum = _mm256_set1_ps(x_sum);
#pragma GCC unroll 8
  for (int n = 0; n < kColumns; n += kLanes)
    _mm256_storeu_ps(total + n,
                     _mm256_fmadd_ps(_mm256_load_ps(scales.zero + n), sum, _mm256_loadu_ps(total + n)));
}

// Terms of several rows that meet the codes of one part together.
template <class Engine>
class Terms {
 public:
  Terms(const Scales& scales, const uint8_t* codes, int64_t steps, float (*totals)[kColumns])
      : scales_(scales), codes_(codes), steps_(steps), totals_(totals) {}

  void add(const int8_t* x, int32_t sum, float step, int64_t row) {
    x_[count_] = x;
    step_[count_] = step;
    row_[count_] = row;
    open_term(sum, sums_[count_]);
    if (++count_ == Engine::kTerms) finish();
  }
  void finish() {
    if (count_ == 0) return;
    Engine::multiply(codes_, steps_, x_, count_, sums_);
    for (int i = 0; i < count_; ++i) close_term(scales_, step_[i], sums_[i], totals_[row_[i]]);
    count_ = 0;
  }

 private:
  const Scales& scales_;
  const uint8_t* codes_;
  int64_t steps_;
  float (*totals_)[kColumns];
  int count_ = 0;
  const int8_t* x_[Engine::kTerms];
  float step_[Engine::kTerms];
  int64_t row_[Engine::kTerms];
  alignas(64) int32_t sums_[Engine::kTerms][kColumns];
};

template <class Engine>
void multiply_part(const Frame& frame, const Scales& scales, const uint8_t* codes, int64_t index, int64_t at,
                   int64_t count, int64_t first_m, int64_t rows, float (*totals)[kColumns]) {
  const FixedRows& x = frame.rows;
  const FixedPart* part = x.part + first_m * x.parts + index;
  Terms<Engine> terms(scales, codes, count / kStepK, totals);
  bool some_left = false;
  for (int64_t m = 0; m < rows; ++m) {
    const FixedPart& of = part[m * x.parts];
    for (int t = 0; t < of.terms; ++t) terms.add(x.term(first_m + m, t, at), of.sum[t], of.step[t], m);
    some_left |= of.left > 0;
  }
  terms.finish();
  for (int64_t m = 0; some_left && m < rows; ++m) {
    const int64_t from = (first_m + m) * x.k + at;
    if (part[m * x.parts].left > 0)
      close_left(scales, codes, x.left + from, x.left_at + from, part[m * x.parts].left, totals[m]);
  }
}

template <class Engine>
void multiply_block(const Frame& frame, int64_t block, int64_t first_m, int64_t rows) {
  const qcts_problem& p = *frame.problem;
  const Layout& layout = frame.layout;
  alignas(64) float totals[kRows][kColumns];
  Scales scales;
  std::memset(totals, 0, static_cast<size_t>(rows) * sizeof totals[0]);
  const uint8_t* codes = frame.prepared + block * layout.groups * layout.group_bytes;
  for (int64_t g = 0; g < layout.groups; ++g, codes += layout.group_bytes) {
    widen(frame, codes + layout.code_bytes, &scales);
    for (int64_t part = 0; part < layout.parts; ++part) {
      const int64_t k = part * avx2::kPartK;
      multiply_part<Engine>(frame, scales, codes + k / kStepK * kStepBytes, g * layout.parts + part,
                            g * layout.group + k, std::min(layout.group - k, avx2::kPartK), first_m, rows,
                            totals);
    }
    for (int64_t m = 0; m < rows; ++m)
      close_group(scales, frame.x_sums[(first_m + m) * layout.groups + g], totals[m]);
  }
  avx2::store_rows(p, first_m, rows, block * kColumns, 1, totals);
}

// One part of a lone row: kCount blocks, `apart` bytes from each other, side by side
// (kernels/avx2_streams.h): g128, 4096 x 4096 from memory, EPYC Zen 3, one thread, 472 us; one block after
// the other 640.
template <class Engine, int kCount>
void multiply_part_of_row(const Frame& frame, const uint8_t* codes, int64_t apart, int64_t index, int64_t at,
                          int64_t count, float (*totals)[kColumns], const uint8_t* scales_at) {
  constexpr int kAhead = kCount == 1 ? avx2::kPrefetchBytes : avx2::kStreamPrefetchBytes;
  constexpr int64_t kTurn = avx2::kStreamBytes / kStepBytes;
  const Layout& layout = frame.layout;
  const FixedRows& x = frame.rows;
  const FixedPart& part = x.part[index];
  alignas(64) int32_t sums[kCount][2][kColumns];
  for (int s = 0; s < kCount; ++s)
    for (int t = 0; t < part.terms; ++t) open_term(part.sum[t], sums[s][t]);
  const int64_t steps = count / kStepK;
  for (int64_t step = 0; step < steps; step += kTurn)
    for (int s = 0; s < kCount; ++s)
      for (int t = 0; t < part.terms; ++t)
        Engine::template multiply_one<kAhead>(codes + s * apart + step * kStepBytes,
                                              std::min(steps - step, kTurn), x.term(0, t, at + step * kStepK),
                                              sums[s][t]);
  const bool last = at + count == (at / layout.group + 1) * layout.group;
  Scales scales;
  for (int s = 0; s < kCount; ++s) {
    const uint8_t* tail = scales_at + s * apart;
    widen(frame, tail, &scales);
    for (int64_t line = 0; last && line < 2 * layout.scale_bytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(tail + line + kAhead), _MM_HINT_T0);
    for (int t = 0; t < part.terms; ++t) close_term(scales, part.step[t], sums[s][t], totals[s]);
    if (part.left > 0)
      close_left(scales, codes + s * apart, x.left + at, x.left_at + at, part.left, totals[s]);
    if (last) close_group(scales, frame.x_sums[at / layout.group], totals[s]);
  }
}

template <class Engine, int kCount>
void multiply_side_by_side(const Frame& frame, int64_t block, int64_t apart) {
  const Layout& layout = frame.layout;
  alignas(64) float totals[kCount][kColumns] = {};
  const int64_t block_bytes = layout.groups * layout.group_bytes;
  const uint8_t* codes = frame.prepared + block * block_bytes;
  for (int64_t g = 0; g < layout.groups; ++g, codes += layout.group_bytes)
    for (int64_t i = 0; i < layout.parts; ++i) {
      const int64_t k = i * avx2::kPartK;
      multiply_part_of_row<Engine, kCount>(
          frame, codes + k / kStepK * kStepBytes, apart * block_bytes, g * layout.parts + i,
          g * layout.group + k, std::min(layout.group - k, avx2::kPartK), totals, codes + layout.code_bytes);
    }
  for (int s = 0; s < kCount; ++s)
    avx2::store_rows(*frame.problem, 0, 1, (block + s * apart) * kColumns, 1, totals + s);
}

template <class Engine>
void multiply_blocks(void* context, int64_t first, int64_t last) {
  const Frame& frame = *static_cast<const Frame*>(context);
  const int64_t m_count = frame.problem->m;
  if (m_count == 1)
    return avx2::in_streams(
        first, last,
        [&](int64_t block, int64_t apart) {
          multiply_side_by_side<Engine, avx2::kStreams>(frame, block, apart);
        },
        [&](int64_t block) { multiply_side_by_side<Engine, 1>(frame, block, 0); });
  for (int64_t block = first; block < last; ++block)
    for (int64_t m = 0; m < m_count; m += kRows)
      multiply_block<Engine>(frame, block, m, std::min<int64_t>(m_count - m, kRows));
}

// Parts of rows, and the sum of each group.
[[maybe_unused]] void fix_rows(void* context, int64_t first, int64_t last) {
  const Frame& frame = *static_cast<const Frame*>(context);
  const qcts_problem& p = *frame.problem;
  const Layout& layout = frame.layout;
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    for (int64_t g = 0; g < layout.groups; ++g) {
      float sum = 0;
      for (int64_t i = 0; i < layout.parts; ++i) {
        const int64_t k = i * avx2::kPartK, index = g * layout.parts + i, at = g * layout.group + k;
        avx2::fix_part(frame.rows, p.x_dtype, row, m, index, at, std::min(layout.group - k, avx2::kPartK));
        const FixedPart& part = frame.rows.part[m * frame.rows.parts + index];
        for (int t = 0; t < part.terms; ++t) sum += part.step[t] * static_cast<float>(part.sum[t]);
        for (int l = 0; l < part.left; ++l) sum += frame.rows.left[m * frame.rows.k + at + l];
      }
      frame.x_sums[m * layout.groups + g] = sum;
    }
  }
}

[[maybe_unused]] uint64_t workspace_bytes(const qcts_problem* p) {
  const Layout layout = layout_of(*p);
  return avx2::fixed_rows_bytes(p->m, p->k, layout.groups * layout.parts) +
         static_cast<uint64_t>(p->m * layout.groups) * sizeof(float);
}
[[maybe_unused]] uint64_t prepared_bytes(const qcts_problem* p) {
  const Layout layout = layout_of(*p);
  return static_cast<uint64_t>(layout.blocks * layout.groups * layout.group_bytes);
}

struct Preparation {
  const qcts_problem* problem;
  uint8_t* prepared;
};
template <class Source>
void prepare_blocks(void* context, int64_t first, int64_t last) {
  const Preparation& task = *static_cast<const Preparation*>(context);
  const qcts_problem& p = *task.problem;
  const Layout layout = layout_of(p);
  const Source source(p);
  const int64_t bytes = dtype_bytes(p.w_dtype);
  for (int64_t block = first; block < last; ++block)
    for (int64_t g = 0; g < layout.groups; ++g) {
      const int64_t n = block * kColumns, columns = std::min<int64_t>(p.n - n, kColumns);
      uint8_t* codes = task.prepared + (block * layout.groups + g) * layout.group_bytes;
      uint8_t* scales = codes + layout.code_bytes;
      for (int64_t c = 0; c < columns; ++c) {
        for (int64_t k = 0; k < p.group; ++k)
          codes[k / kStepK * kStepBytes + 4 * c + k % 4] |=
              static_cast<uint8_t>(source.code(n + c, g * p.group + k) << (k % kStepK < 4 ? 0 : 4));
        source.copy_scales(g, n + c, scales + c * bytes, scales + layout.scale_bytes + c * bytes);
      }
    }
}
template <class Source>
void prepare_weight(const qcts_problem* problem, void* prepared) {
  std::memset(prepared, 0, prepared_bytes(problem));
  Preparation task = {problem, static_cast<uint8_t*>(prepared)};
  parallel_for(problem->threads, layout_of(*problem).blocks, 1, prepare_blocks<Source>, &task);
}

template <class Engine>
void run_linear(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  const Layout layout = layout_of(p);
  auto* x_sums = static_cast<float*>(p.workspace);
  Frame frame = {problem, layout, static_cast<const uint8_t*>(p.prepared),
                 avx2::fixed_rows_at(x_sums + p.m * layout.groups, p.m, p.k, layout.groups * layout.parts),
                 x_sums};
  parallel_for(p.threads, p.m, 4, fix_rows, &frame);
  parallel_for(p.threads, layout.blocks, 1, multiply_blocks<Engine>, &frame);
}

}  // namespace
}  // namespace qcts::fixed
