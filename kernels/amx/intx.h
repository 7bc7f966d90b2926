// SPDX-License-Identifier: BSD-3-Clause
// The engine of kernels/vnni/int8_linear.h for TDPBSUD where codes may be nibbles and groups parts of a row.
// Never timed.
//
// What is argued from, of an Emerald Rapids core: a tile product takes 16 cycles, a tile of 16 rows 8 to load
// from L1, and memory brings some 6 bytes a cycle. 64 k of 64 columns are 2 KiB of nibbles, 340 cycles of
// memory. They are 4 products (64 cycles) for each 16 rows, and once 64 stores of a vector, one a cycle; the
// loads, shifts and masks before them fit beside (llvm-mca, sapphirerapids: 48 cycles with two stores a
// cycle). The end of a group costs 16 rows and 64 columns 224 instructions of vectors, two a cycle: 112
// cycles. So groups of 32 are bound by their ends as soon as memory is not, groups of 128 by the products,
// and up to 16 rows all of it fits into the time that memory takes, if it overlaps. Hence this order:
//   - The first 16 rows leave nibbles in a panel of bytes as they meet them; the step after the one that is
//     multiplied is unpacked before it, so that no tile is loaded from what was stored a moment ago.
//   - A group ends after the products of the next were begun.
//   - More rows meet the panel of 512 k, 32 at a time, and all its groups before the next 32: their totals
//     (4 KiB for half the columns) stay in L1, where 512 rows' (128 KiB) would pass through L2 a group.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512vnni/dots.h"
#include "kernels/vnni/groups.h"
#include "kernels/vnni/schemes.h"

namespace qcts::amx {
namespace {

// Groups of up to 32 k are one step of half the k; all others are whole steps.
[[maybe_unused]] constexpr int64_t byte_step_k(int64_t k) { return k <= 32 ? 32 : 64; }

struct NibbleTiles : vnni::IntxNibbles {
  static constexpr int64_t pad_k(int64_t group) { return byte_step_k(group); }
};
struct ByteTiles : vnni::IntxBytes {
  static constexpr int64_t pad_k(int64_t group) { return byte_step_k(group); }
};

constexpr int64_t kPanelK = 64 * kChunkSteps, kPanelBytes = kPanelK * kColumns;
constexpr int kEpilogueRows = 4;  // at a time: of 32 registers 16 sums, 4 x, a scale, a pair

[[gnu::always_inline]] inline void ask_ahead(const uint8_t* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at + kPrefetchBytes), _MM_HINT_T0);
}

// Nibbles of `k` k as bytes.
[[maybe_unused]] void unpack_step(const uint8_t* codes, int64_t k, uint8_t* to) {
  const __m512i low = _mm512_set1_epi8(15);
  for (int64_t row = 0; row < k / 8; ++row, codes += kRowBytes, to += 2 * kRowBytes)
#pragma GCC unroll 4
    for (int at = 0; at < kRowBytes; at += 64) {
      ask_ahead(codes + at);
      const __m512i two = _mm512_loadu_si512(codes + at);
      _mm512_storeu_si512(to + at, _mm512_and_si512(two, low));
      _mm512_storeu_si512(to + kRowBytes + at, _mm512_and_si512(_mm512_srli_epi32(two, 4), low));
    }
}

// Brings the steps of a piece one after the other, and asks memory for what lies 8 KiB further on, in the
// order in which it lies.
template <int kQuads>
class Feed {
 public:
  // The panel is written round and round: all of it for later rows, or two steps that stay in L1. Its bytes
  // are a power of two.
  Feed(const vnni::PackedPanel& packed, int64_t k, uint8_t* panel, int64_t panel_bytes)
      : panel_(panel),
        panel_bytes_(panel_bytes),
        step_k_(byte_step_k(k)),
        steps_(k / step_k_),
        tail_bytes_(packed.bytes - k * kColumns / kQuads),
        next_(packed.codes),
        left_(packed.groups * steps_),
        of_group_(steps_) {
    bring();
  }
  // The tiles of a step, when those of the step after it are on their way.
  const uint8_t* take() {
    const uint8_t* tiles = brought_;
    if (left_ > 0) bring();
    return tiles;
  }

 private:
  void bring() {
    if (of_group_ == 0) {
      for (int64_t line = 0; line < tail_bytes_; line += 64) ask_ahead(next_ + line);
      next_ += tail_bytes_;
      of_group_ = steps_;
    }
    const int64_t bytes = step_k_ * kColumns / kQuads;
    brought_ = next_;
    if (kQuads == 1) {
      for (int64_t line = 0; line < bytes; line += 64) ask_ahead(next_ + line);
    } else {
      uint8_t* to = panel_ + (filled_ & (panel_bytes_ - 1));
      unpack_step(next_, step_k_, to);
      brought_ = to;
      filled_ += step_k_ * kColumns;
    }
    next_ += bytes;
    --of_group_;
    --left_;
  }

  uint8_t* panel_;
  int64_t panel_bytes_, step_k_, steps_, tail_bytes_;
  const uint8_t *next_, *brought_ = nullptr;
  int64_t left_, of_group_, filled_ = 0;
};

// As multiply_one, of what a feed brings.
template <int kQuads>
void multiply_fed(const Operands& of, Feed<kQuads>* feed, char* sums, int64_t ld_bytes) {
  see_stores();
  if (of.first)
    zero_one();
  else
    load_one(sums, ld_bytes);
  const char* x = static_cast<const char*>(of.x);
  for (int64_t step = 0; step < of.steps; ++step) {
    const uint8_t* at = feed->take();
    see_stores();
    step_one<false>(at, x + step * 64, of.ldx_bytes);
  }
  store_one(sums, ld_bytes);
}

// A piece whose codes lie as bytes: `tiles`, from a group to the next tiles_bytes.
struct GroupStep {
  const vnni::PackedPanel* packed;
  int64_t k;  // of a group
  const uint8_t* tiles;
  int64_t tiles_bytes;
  vnni::Sums sums;

  // Rows from m on with a group.
  Operands operands(int64_t g, int64_t m) const {
    return {tiles + g * tiles_bytes, k / byte_step_k(k), packed->x + m * packed->ldx + g * k, packed->ldx,
            packed->first};
  }
  vnni::Epilogue epilogue(int64_t g) const {
    const vnni::Epilogue& first = *packed->epilogue;
    return {first.tail + g * packed->bytes,
            first.scale_dtype,
            first.scale_bytes,
            first.two_pairs,
            first.x_pairs + g,
            first.groups,
            first.totals};
  }
};

// Sums of kRows rows from m on and V vectors of columns.
template <int kRows, int V>
[[gnu::always_inline]] inline void rows_epilogue(const vnni::Epilogue& epilogue, int64_t m, int first,
                                                 const int32_t* sums) {
  __m512i sum[kRows][V];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sum[i][v] = _mm512_loadu_si512(sums + (i * V + v) * avx512::kLanes);
  vnni::group_epilogue<avx512vnni::Vector, kRows, V>(epilogue, m, first, sum);
}
template <int V>
void tiles_epilogue(const GroupStep& meeting, int64_t g, int64_t m, int64_t rows, int first,
                    const int32_t* sums) {
  const vnni::Epilogue epilogue = meeting.epilogue(g);
  int64_t row = 0;
  for (; row + kEpilogueRows <= rows; row += kEpilogueRows)
    rows_epilogue<kEpilogueRows, V>(epilogue, m + row, first, sums + row * V * avx512::kLanes);
  for (; row < rows; ++row) rows_epilogue<1, V>(epilogue, m + row, first, sums + row * V * avx512::kLanes);
}

// `multiply(g, sums, ld_bytes)` for each group of a piece, of V vectors of columns and up to 8 / V tiles of
// rows. Sums of a group, twice: one is read while the other is made.
template <int V, class Multiply>
void meet(const GroupStep& meeting, int64_t m, int64_t rows, int first, const Multiply& multiply) {
  if (meeting.packed->epilogue == nullptr)
    return multiply(0, reinterpret_cast<char*>(&meeting.sums[m][first * avx512::kLanes]), kRowBytes);
  alignas(64) int32_t sums[2][2 * kTileRows * 2 * avx512::kLanes];
  for (int64_t g = 0; g < meeting.packed->groups; ++g) {
    multiply(g, reinterpret_cast<char*>(sums[g % 2]), 64 * V);
    if (g > 0) tiles_epilogue<V>(meeting, g - 1, m, rows, first, sums[(g - 1) % 2]);
  }
  const int64_t last = meeting.packed->groups - 1;
  tiles_epilogue<V>(meeting, last, m, rows, first, sums[last % 2]);
}

// The rows beyond the first 16.
[[maybe_unused]] void meet_rest(const GroupStep& meeting, int64_t rows) {
  const int64_t pairs = (rows - 1) / kTileRows / 2;
  for (int first = 0; first < 4; first += 2)
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t m = kTileRows + i * 2 * kTileRows, left = rows - m;
      meet<2>(meeting, m, left < 2 * kTileRows ? left : 2 * kTileRows, first,
              [&](int64_t g, char* sums, int64_t ld_bytes) {
                const Operands of = meeting.operands(g, m);
                multiply_two<false>(of, first * 64, static_cast<const char*>(of.x), sums, ld_bytes, false);
              });
    }
  const int64_t m = kTileRows + pairs * 2 * kTileRows;
  if (m >= rows) return;
  meet<4>(meeting, m, rows - m, 0, [&](int64_t g, char* sums, int64_t ld_bytes) {
    const Operands of = meeting.operands(g, m);
    multiply_one<false>(of, static_cast<const char*>(of.x), sums, ld_bytes, false);
  });
}

struct IntxTiles {
  static constexpr int kRows = amx::kRows;

  static constexpr int64_t chunk_steps(int quads, int64_t) { return kPanelK / 4 / quads; }
  static int tail_ahead_bytes(bool asks_ahead, int64_t) { return asks_ahead ? vnni::kPrefetchBytes : 0; }
  static constexpr int64_t chunk_groups(int64_t k) { return k < kPanelK ? kPanelK / k : 1; }
  static int64_t padded_rows(int64_t m) { return amx::padded_rows(m); }
  static void open(const vnni::Layout& layout, int64_t m) { open_tiles(m, byte_step_k(layout.padded_group)); }
  static void close() { release_tiles(); }

  template <class Scheme>
  static void multiply(const vnni::PackedPanel& packed, int64_t rows, vnni::Sums sums) {
    constexpr int kQuads = Scheme::kQuads;
    static_assert(Scheme::pad_k(32) == 32 && Scheme::pad_k(33) == 64);
    alignas(64) uint8_t panel[kQuads == 2 ? kPanelBytes : 64];
    const int64_t k = packed.steps * 4 * kQuads;
    GroupStep meeting = {&packed, k, kQuads == 2 ? panel : packed.codes,
                         kQuads == 2 ? k * kColumns : packed.bytes, sums};
    Feed<kQuads> feed(packed, k, panel, rows <= kTileRows ? 2 * amx::kStepBytes : kPanelBytes);
    meet<4>(meeting, 0, rows < kTileRows ? rows : kTileRows, 0, [&](int64_t g, char* to, int64_t ld_bytes) {
      multiply_fed(meeting.operands(g, 0), &feed, to, ld_bytes);
    });
    if (rows > kTileRows) meet_rest(meeting, rows);
  }
};

}  // namespace
}  // namespace qcts::amx
