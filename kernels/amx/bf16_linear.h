// SPDX-License-Identifier: BSD-3-Clause
// The engine of kernels/bf16/linear.h for TDPBF16PS. A tile unit starts 512 products of pairs in 16 cycles,
// 32 times what VDPBF16PS does on the same core (Emerald Rapids: 2.92 trillion operations a second against
// 0.087), but reads weights from memory alone: codes become bfloat16 in a buffer, in steps of 32 k and 64
// columns (4 KiB). x that is not bfloat16 is rounded to it.
// - m <= 16: one pass, so what is made is used once. The buffer is a ring of four steps; between the products
//   of a step those of two later are decoded, for tile unit, multipliers and loads to work side by side: a
//   step is 64 cycles of the tile unit and, by llvm-mca for Sapphire Rapids, 115 cycles of decoding 4 bits,
//   195 of int8, 265 of e4m3. In 265 cycles memory brings a core 1700 bytes at most, of the 2048 that a step
//   of bytes is.
// - m > 16: codes of 512 k become a panel, 64 KiB, for up to 512 rows; the 32 KiB of one half of its columns
//   stay in L1 while the rows pass, and the rows of x of one panel, 512 KiB at most, in the second cache. (A
//   prototype that read x from the third cache fell to a quarter of its pace.) Two tiles of rows meet two of
//   columns: 4 loads for 4 products.
// Scales act on the float32 sums of a group, a multiply-add of an output for every group, two where there are
// zeros: 16 vectors for each tile that 32, 64 or 128 k made. They come after the next group's products in the
// program, whose tiles nothing has to wait for. A group of 16 is a step of half the k. Rounded weights would
// spare all that, and err by 2^-9 of every product. These kernels were never timed.
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

constexpr int kTileK = 32, kStepPairs = kTileK / 2;  // of a whole step
constexpr int kRingSteps = 4, kLeadSteps = 2;
constexpr int kPanelSteps = 16;

// Groups of up to 16 k are one step of half the k; all others are whole steps.
[[maybe_unused]] constexpr int64_t bf16_step_k(int64_t padded_group) {
  return padded_group <= kTileK / 2 ? kTileK / 2 : kTileK;
}

// What a group's products come to before its scales act: twice, so that one can be read while the other is
// made.
struct Parts {
  alignas(64) float of[2][2 * kTileRows * 2 * kTileRows];
};

// The steps of a block in the order of use, as pairs of bfloat16.
template <class Scheme>
class Decoder {
 public:
  Decoder(const LinearCall& call, const uint8_t* block)
      : layout_(call.layout),
        header_(block),
        at_(block + Scheme::kHeaderBytes),
        ahead_line_(call.asks_ahead ? 64 : 0),
        ahead_(at_ + ahead_line_ / 64 * bf16::kPrefetchBytes),
        step_k_(bf16_step_k(layout_.padded_group)),
        groups_left_(layout_.groups) {}

  // The next step; nothing after the last. What a group has no k for is zeros.
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
    for (int64_t line = 0; line < layout_.scale_bytes; line += 64) ask();
    at_ += layout_.scale_bytes;
    k_ = 0;
    --groups_left_;
  }

 private:
  [[gnu::always_inline]] void ask() {
    _mm_prefetch(reinterpret_cast<const char*>(ahead_), _MM_HINT_T0);
    ahead_ += ahead_line_;
  }
  [[gnu::always_inline]] void decode(int64_t count, Panel to) {
    for (int64_t k = 0; k < count; k += Scheme::kStep, at_ += Scheme::kStep * Scheme::kBytesPerK) {
#pragma GCC unroll 8
      for (int line = 0; line < Scheme::kStep * Scheme::kBytesPerK; line += 64) ask();
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

// Sums of a group, [rows][columns from first_n on], that its scales have yet to act on.
struct Epilogue {
  const uint8_t* scales;  // NULL: there are none
  const float* sums;
  int64_t ld_sums;
  const float* x_sums;  // of the group, a row's `groups` apart
  int64_t rows;
  int first_n;
  Sums totals;  // of the same rows
};
// totals += scale * sum + zero * sum of x, of kCount columns.
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

// All rows, at most 16.
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

// Steps of a group that lie in a panel from step `at` on: the whole group, or as much as the panel holds.
struct PackedPanel {
  int64_t group, first_step, steps, at;
  bool first, last;
  bool whole() const { return first && last; }
};
// A block's columns meet the rows from first_m on.
struct TileStep {
  const LinearCall* call;
  const uint8_t* block;
  int64_t first_m;
  const __m512i (*panel)[kVectors];
  Sums open, totals;  // sums of a group that is not over; of those that are
  Parts* parts;
};

// A piece's products with one or two tiles of rows, and as many columns from first_n on as make four tiles of
// sums.
template <class Scheme, int kTiles>
Epilogue meet(const TileStep& at, const PackedPanel& packed, int64_t m, int64_t rows, int first_n,
              float* part) {
  const LinearCall& call = *at.call;
  const int64_t groups = call.layout.groups;
  float* sums = packed.whole() ? part : &at.open[m][first_n];
  const int64_t ld_sums = packed.whole() ? kColumns / kTiles : kColumns;
  const char* x = x_bytes(call, at.first_m + m, packed.group, packed.first_step);
  const Operands of = {reinterpret_cast<const uint8_t*>(at.panel + packed.at * kStepPairs), packed.steps, x,
                       2 * call.layout.x_stride, packed.first};
  if (kTiles == 1)
    multiply_one<true>(of, x, reinterpret_cast<char*>(sums), 4 * ld_sums, false);
  else
    multiply_two<true>(of, 4 * first_n, x, reinterpret_cast<char*>(sums), 4 * ld_sums, false);
  if (!packed.last) return {};
  return {scales_of<Scheme>(call, at.block, packed.group),
          sums,
          ld_sums,
          call.x_sums + (at.first_m + m) * groups + packed.group,
          rows,
          first_n,
          at.totals + m};
}

// All pieces of a panel, the rows from `first` to `last` in kTiles tiles.
template <class Scheme, int kTiles>
void meet_rows(const TileStep& at, const PackedPanel* packed_panels, int count, int64_t first, int64_t last,
               int64_t rows) {
  constexpr int kCount = kColumns / kTiles;
  constexpr int64_t kMax = kTiles * kTileRows;
  Epilogue before = {};
  int turn = 0;
  for (int first_n = 0; first_n < kColumns; first_n += kCount)
    for (int64_t m = first; m < last; m += kMax)
      for (int i = 0; i < count; ++i, turn ^= 1) {
        const Epilogue now = meet<Scheme, kTiles>(at, packed_panels[i], m, rows - m < kMax ? rows - m : kMax,
                                                  first_n, at.parts->of[turn]);
        group_epilogue<Scheme, kCount>(*at.call, before);
        before = now;
      }
  group_epilogue<Scheme, kCount>(*at.call, before);
}

// The pieces that fill a panel, decoded; `next` is where the one after them begins.
template <class Scheme>
int fill_panel(const Layout& layout, Decoder<Scheme>* decoder, Panel panel, PackedPanel* next,
               PackedPanel* packed_panels) {
  const int64_t group_steps = layout.x_group / bf16_step_k(layout.padded_group);
  int count = 0;
  for (next->at = 0; next->group < layout.groups; ++count) {
    const int64_t left = group_steps - next->first_step, room = kPanelSteps - next->at;
    if (count > 0 && left > room) break;
    next->steps = left < room ? left : room;
    next->last = next->steps == left;
    for (int64_t step = 0; step < next->steps; ++step) decoder->next(panel + (next->at + step) * kStepPairs);
    packed_panels[count] = *next;
    next->at += next->steps;
    next->first = next->last;
    next->first_step = next->last ? 0 : next->first_step + next->steps;
    next->group += next->last ? 1 : 0;
  }
  return count;
}

// More than 16 rows of x, of which up to kRows from first_m on.
template <class Scheme>
void multiply_many(const LinearCall& call, const uint8_t* block, int64_t first_m, int64_t rows, Sums totals) {
  __m512i panel[kPanelSteps * kStepPairs][kVectors];
  alignas(64) float open[kRows][kColumns];
  Parts parts;
  const TileStep meeting = {&call, block, first_m, panel, open, totals, &parts};
  Decoder<Scheme> decoder(call, block);
  PackedPanel packed_panels[kPanelSteps], next = {0, 0, 0, 0, true, false};
  const int64_t paired = (rows + kTileRows - 1) / kTileRows / 2 * 2 * kTileRows;  // rows in two tiles
  while (next.group < call.layout.groups) {
    const int count = fill_panel(call.layout, &decoder, panel, &next, packed_panels);
    meet_rows<Scheme, 2>(meeting, packed_panels, count, 0, paired, rows);
    meet_rows<Scheme, 1>(meeting, packed_panels, count, paired, rows, rows);
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
// Where x is bfloat16 or is not taken: beside integers of eight bits, whose steps are finer than what
// rounding x costs, and beside the tables of bfloat16 weights.
struct ExactTiles : Bfloat16Tiles {
  static constexpr qcts_numerics kNumerics = numerics_of_sums(QCTS_F32, QCTS_NONE, QCTS_NUM_FLUSH_SUBNORMALS);
  static qcts_status takes(const qcts_problem& p, char* why, size_t why_size) {
    return bf16::takes_bf16(p, why, why_size);
  }
};

}  // namespace
}  // namespace qcts::amx
