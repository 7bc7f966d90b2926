// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel for kernels/bf16/linear.h that uses TDPBF16PS.
// An AMX core starts 512 products of pairs in 16 cycles, which is 32 times the rate of VDPBF16PS.
// Emerald Rapids reached 2.92 trillion operations per second with AMX and 0.087 with VDPBF16PS.
// TDPBF16PS reads weights only from memory.
// So the kernel decodes codes to bfloat16 into a buffer, in steps of 32 values of k and 64 columns (4 KiB).
// If x is not bfloat16, it is rounded to bfloat16.
//
// - If m <= 16, the weight is read once, so each decoded step is used once.
//   The buffer is a ring of four steps. While one step is multiplied, the step two places later is decoded.
//   So the tile unit, the multipliers and the loads work in parallel.
//   The tile unit needs 64 cycles for a step.
//   Decoding a step takes 115 cycles with 4 bits, 195 with int8 and 265 with e4m3,
//   by llvm-mca for Sapphire Rapids.
//   A step of one-byte codes has 2048 bytes. In 265 cycles, memory supplies at most 1700 of them to a core.
// - If m > 16, codes of 512 values of k are decoded into a panel of 64 KiB, which serves up to 512 rows.
//   One half of the panel's columns (32 KiB) stays in L1 while the rows pass.
//   The part of those rows of x that is multiplied by the panel (at most 512 KiB) stays in L2.
//   A prototype that read x from L3 reached a quarter of the speed.
//   Two tiles of rows are multiplied by two tiles of columns, with 4 loads for 4 products.
//
// Scales act on the float32 sums of a group.
// Each output and group needs one multiply-add, or two if there are zeros.
// A tile of sums covers 32, 64 or 128 values of k and takes 16 vectors.
// In the program, these multiply-adds come after the products of the next group, so no tile waits for them.
// A group of 16 is a step with half as many values of k.
// Decoding to scaled weights in bfloat16 would avoid this work,
// but it would add an error of 2^-9 to every product. These kernels have not been timed.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/bf16/linear.h"

namespace qcts::amx {
namespace {

using bf16::kVectors;
using bf16::Layout;
using bf16::LinearCall;
using bf16::Panel;
using bf16::Sums;

constexpr int kTileK = 32, kStepPairs = kTileK / 2;  // values of k in a whole step; pairs of them
constexpr int kRingSteps = 4, kLeadSteps = 2;
constexpr int kPanelSteps = 16;

// A group of up to 16 values of k is one step of half the size. All other groups consist of whole steps.
[[maybe_unused]] constexpr int64_t bf16_step_k(int64_t padded_group) {
  return padded_group <= kTileK / 2 ? kTileK / 2 : kTileK;
}

// Sums of a group before its scales act. There are two buffers: one is read while the other is filled.
struct Parts {
  alignas(64) float of[2][2 * kTileRows * 2 * kTileRows];
};

// Decodes the steps of a block to pairs of bfloat16, in the order in which they are multiplied.
template <class Scheme>
class Decoder {
 public:
  Decoder(const LinearCall& call, const uint8_t* block)
      : layout_(call.layout),
        header_(block),
        at_(block + Scheme::kHeaderBytes),
        ahead_line_(call.prefetches ? 64 : 0),
        ahead_(at_ + ahead_line_ / 64 * bf16::kPrefetchBytes),
        step_k_(bf16_step_k(layout_.padded_group)),
        groups_left_(layout_.groups) {}

  // Decodes the next step, or does nothing after the last step. Any k beyond the end of the group becomes 0.
  void next(Panel to) {
    if (groups_left_ == 0) return;
    const int64_t left = layout_.padded_group - k_;
    if (left >= kTileK) {
      decode(kTileK, to);
    } else {
      decode(left, to);
      std::memset(to[left / 2], 0, static_cast<size_t>(step_k_ - left) / 2 * sizeof to[0]);
    }
    if (k_ < layout_.padded_group) return;
    for (int64_t line = 0; line < layout_.scale_bytes; line += 64) prefetch_line();
    at_ += layout_.scale_bytes;
    k_ = 0;
    --groups_left_;
  }

 private:
  [[gnu::always_inline]] void prefetch_line() {
    _mm_prefetch(reinterpret_cast<const char*>(ahead_), _MM_HINT_T0);
    ahead_ += ahead_line_;
  }
  [[gnu::always_inline]] void decode(int64_t count, Panel to) {
    for (int64_t k = 0; k < count; k += Scheme::kStep, at_ += Scheme::kStep * Scheme::kBytesPerK) {
#pragma GCC unroll 8
      for (int line = 0; line < Scheme::kStep * Scheme::kBytesPerK; line += 64) prefetch_line();
#pragma GCC unroll 4
      for (int pair = 0; pair < Scheme::kStep / 2; ++pair)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) to[k / 2 + pair][v] = Scheme::decode(header_, at_, v, pair);
    }
    k_ += count;
  }

  const Layout& layout_;
  const uint8_t *header_, *at_;
  int64_t ahead_line_;
  const uint8_t* ahead_;
  int64_t step_k_, groups_left_, k_ = 0;
};

// Sums of a group [rows][columns] before the group's scales act. The first column is first_n.
struct Epilogue {
  const uint8_t* scales;  // NULL if there are no scales
  const float* sums;
  int64_t ld_sums;
  const float* x_sums;  // sums of x over the group; consecutive rows are `groups` floats apart
  int64_t rows;
  int first_n;
  Sums totals;  // sums of the finished groups for the same rows
};
// For kCount columns, computes totals += scale * sum + zero * (sum of x).
template <class Scheme, int kCount>
void group_epilogue(const LinearCall& call, const Epilogue& of) {
  if (of.scales == nullptr) return;
  constexpr int kSome = kCount / avx512::kLanes;
  const int64_t groups = call.layout.groups;
  __m512 scale[kSome], zero[kSome];
#pragma GCC unroll 4
  for (int v = 0; v < kSome; ++v)
    Scheme::scales(*call.problem, of.scales, of.first_n / avx512::kLanes + v, &scale[v], &zero[v]);
  for (int64_t m = 0; m < of.rows; ++m)
#pragma GCC unroll 4
    for (int v = 0; v < kSome; ++v) {
      float* at = &of.totals[m][of.first_n + v * avx512::kLanes];
      const __m512 sum = _mm512_loadu_ps(of.sums + m * of.ld_sums + v * avx512::kLanes);
      __m512 total = _mm512_fmadd_ps(scale[v], sum, _mm512_loadu_ps(at));
      if (Scheme::kHasZeros) total = _mm512_fmadd_ps(zero[v], _mm512_set1_ps(of.x_sums[m * groups]), total);
      _mm512_storeu_ps(at, total);
    }
}

[[maybe_unused]] const char* x_bytes(const LinearCall& call, int64_t m, int64_t group, int64_t step) {
  return reinterpret_cast<const char*>(call.x + m * call.layout.x_stride + group * call.layout.x_group +
                                       step * kTileK);
}
template <class Scheme>
const uint8_t* scales_of(const LinearCall& call, const uint8_t* block, int64_t group) {
  const Layout& layout = call.layout;
  return block + Scheme::kHeaderBytes + group * layout.group_bytes + layout.padded_group * Scheme::kBytesPerK;
}

// Multiplies all rows of a call with at most 16 rows.
template <class Scheme>
void multiply_few(const LinearCall& call, const uint8_t* block, Sums totals) {
  const Layout& layout = call.layout;
  const int64_t steps = layout.x_group / bf16_step_k(layout.padded_group), ldx_bytes = 2 * layout.x_stride;
  __m512i ring[kRingSteps][kStepPairs][kVectors];
  Parts parts;
  Decoder<Scheme> decoder(call, block);
  for (int lead = 0; lead < kLeadSteps; ++lead) decoder.next(ring[lead]);
  Epilogue before = {};
  int64_t at = 0;
  for (int64_t g = 0; g < layout.groups; ++g) {
    zero_one();
    for (int64_t step = 0; step < steps; ++step, ++at) {
      decoder.next(ring[(at + kLeadSteps) % kRingSteps]);
      see_stores();
      step_one<true>(reinterpret_cast<const uint8_t*>(ring[at % kRingSteps]), x_bytes(call, 0, g, step),
                     ldx_bytes);
    }
    float* sums = parts.of[g % 2];
    store_one(reinterpret_cast<char*>(sums), kRowBytes);
    group_epilogue<Scheme, kColumns>(call, before);
    before = {scales_of<Scheme>(call, block, g), sums, kColumns, call.x_sums + g, call.problem->m, 0, totals};
  }
  group_epilogue<Scheme, kColumns>(call, before);
}

// Steps of one group in the decoded panel, starting at step `at`: the whole group, or the part in the panel.
struct GroupSpan {
  int64_t group, first_step, steps, at;
  bool first, last;
  bool whole() const { return first && last; }
};
// State of the columns of one block and of the rows that start at first_m.
struct TileStep {
  const LinearCall* call;
  const uint8_t* block;
  int64_t first_m;
  const __m512i (*panel)[kVectors];
  Sums open, totals;  // `open`: sums of the unfinished group; `totals`: sums of the finished groups
  Parts* parts;
};

// Multiplies one span by one or two tiles of rows. The columns start at first_n.
// There are 64 / kTiles columns, so that there are four tiles of sums.
template <class Scheme, int kTiles>
Epilogue multiply_span(const TileStep& at, const GroupSpan& span, int64_t m, int64_t rows, int first_n,
                       float* part) {
  const LinearCall& call = *at.call;
  const int64_t groups = call.layout.groups;
  float* sums = span.whole() ? part : &at.open[m][first_n];
  const int64_t ld_sums = span.whole() ? kColumns / kTiles : kColumns;
  const char* x = x_bytes(call, at.first_m + m, span.group, span.first_step);
  const Operands of = {reinterpret_cast<const uint8_t*>(at.panel + span.at * kStepPairs), span.steps, x,
                       2 * call.layout.x_stride, span.first};
  if (kTiles == 1)
    multiply_one<true>(of, x, reinterpret_cast<char*>(sums), 4 * ld_sums, false);
  else
    multiply_two<true>(of, 4 * first_n, x, reinterpret_cast<char*>(sums), 4 * ld_sums, false);
  if (!span.last) return {};
  return {scales_of<Scheme>(call, at.block, span.group),
          sums,
          ld_sums,
          call.x_sums + (at.first_m + m) * groups + span.group,
          rows,
          first_n,
          at.totals + m};
}

// Multiplies all spans of a decoded panel by the rows [first, last), kTiles tiles at a time.
template <class Scheme, int kTiles>
void multiply_rows(const TileStep& at, const GroupSpan* spans, int count, int64_t first, int64_t last,
                   int64_t rows) {
  constexpr int kCount = kColumns / kTiles;
  constexpr int64_t kMax = kTiles * kTileRows;
  Epilogue before = {};
  int turn = 0;
  for (int first_n = 0; first_n < kColumns; first_n += kCount)
    for (int64_t m = first; m < last; m += kMax)
      for (int i = 0; i < count; ++i, turn ^= 1) {
        const Epilogue now = multiply_span<Scheme, kTiles>(at, spans[i], m, rows - m < kMax ? rows - m : kMax,
                                                           first_n, at.parts->of[turn]);
        group_epilogue<Scheme, kCount>(*at.call, before);
        before = now;
      }
  group_epilogue<Scheme, kCount>(*at.call, before);
}

// Decodes as many spans as `panel` can hold and returns their number.
// Sets `next` to the first span that does not fit.
template <class Scheme>
int fill_panel(const Layout& layout, Decoder<Scheme>* decoder, Panel panel, GroupSpan* next,
               GroupSpan* spans) {
  const int64_t group_steps = layout.x_group / bf16_step_k(layout.padded_group);
  int count = 0;
  for (next->at = 0; next->group < layout.groups; ++count) {
    const int64_t left = group_steps - next->first_step, room = kPanelSteps - next->at;
    if (count > 0 && left > room) break;
    next->steps = left < room ? left : room;
    next->last = next->steps == left;
    for (int64_t step = 0; step < next->steps; ++step) decoder->next(panel + (next->at + step) * kStepPairs);
    spans[count] = *next;
    next->at += next->steps;
    next->first = next->last;
    next->first_step = next->last ? 0 : next->first_step + next->steps;
    next->group += next->last ? 1 : 0;
  }
  return count;
}

// Multiplies calls of more than 16 rows. Takes up to kRows rows, starting at first_m.
template <class Scheme>
void multiply_many(const LinearCall& call, const uint8_t* block, int64_t first_m, int64_t rows, Sums totals) {
  __m512i panel[kPanelSteps * kStepPairs][kVectors];
  alignas(64) float open[kRows][kColumns];
  Parts parts;
  const TileStep step = {&call, block, first_m, panel, open, totals, &parts};
  Decoder<Scheme> decoder(call, block);
  GroupSpan spans[kPanelSteps], next = {0, 0, 0, 0, true, false};
  // number of rows that are taken two tiles at a time
  const int64_t paired = (rows + kTileRows - 1) / kTileRows / 2 * 2 * kTileRows;
  while (next.group < call.layout.groups) {
    const int count = fill_panel(call.layout, &decoder, panel, &next, spans);
    multiply_rows<Scheme, 2>(step, spans, count, 0, paired, rows);
    multiply_rows<Scheme, 1>(step, spans, count, paired, rows, rows);
  }
}

template <class Scheme>
void multiply_block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
  alignas(64) float totals[kRows][kColumns];
  std::memset(totals, 0, static_cast<size_t>(padded_rows(rows)) * sizeof totals[0]);
  const uint8_t* at = call.prepared + block * call.layout.block_bytes;
  if (call.problem->m <= kTileRows)
    multiply_few<Scheme>(call, at, totals);
  else
    multiply_many<Scheme>(call, at, first_m, rows, totals);
  avx512::store_rows(*call.problem, first_m, rows, block * kColumns, Scheme::factor(at), totals);
}

template <class Scheme>
void multiply_blocks(void* context, int64_t first, int64_t last) {
  const LinearCall& call = *static_cast<const LinearCall*>(context);
  const int64_t m_count = call.problem->m;
  open_tiles(m_count, 2 * bf16_step_k(call.layout.padded_group));
  for (int64_t block = first; block < last; ++block)
    Scheme::specialize(call.prepared + block * call.layout.block_bytes, [&](auto scheme) {
      for (int64_t m = 0; m < m_count; m += kRows)
        multiply_block<decltype(scheme)>(call, block, m, m_count - m < kRows ? m_count - m : kRows);
    });
  release_tiles();
}

struct Bfloat16Tiles {
  static constexpr const char* kVariant = "amx";
  static constexpr qcts_numerics kNumerics = numerics_of_sums(QCTS_F32, QCTS_BF16, QCTS_NUM_FLUSH_SUBNORMALS);

  static qcts_status takes(const qcts_problem&, char*, size_t) { return QCTS_OK; }
  static int64_t pad_x(int64_t padded_group) { return bf16_step_k(padded_group); }
  static int64_t padded_rows(int64_t m) { return amx::padded_rows(m); }
  template <class Scheme>
  static uint64_t workspace_bytes(const qcts_problem* p) {
    return bf16::workspace_bytes<Scheme, Bfloat16Tiles>(p);
  }
  template <class Scheme>
  static void run(const qcts_problem* problem) {
    LinearCall call = bf16::call_of<Scheme, Bfloat16Tiles>(problem);
    parallel_for(problem->threads, padded_rows(problem->m), 8, bf16::copy_rows<Scheme>, &call);
    parallel_for(problem->threads, call.layout.blocks, 1, multiply_blocks<Scheme>, &call);
  }
};
// For schemes whose steps are finer than the error of rounding x to bfloat16:
// 8-bit integers, and tables of bfloat16 weights. Refuses x that is not bfloat16.
struct ExactTiles : Bfloat16Tiles {
  static constexpr qcts_numerics kNumerics = numerics_of_sums(QCTS_F32, QCTS_NONE, QCTS_NUM_FLUSH_SUBNORMALS);
  static qcts_status takes(const qcts_problem& p, char* why, size_t why_size) {
    return bf16::takes_bf16(p, why, why_size);
  }
};

}  // namespace
}  // namespace qcts::amx
