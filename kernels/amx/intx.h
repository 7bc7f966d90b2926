// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel for kernels/vnni/int8_linear.h that uses TDPBSUD.
// Codes may be nibbles, and groups may be parts of a row. This kernel has not been timed.
//
// The order of work follows from these figures of an Emerald Rapids core.
// A tile product takes 16 cycles, loading a tile of 16 rows from L1 takes 8,
// and memory supplies about 6 bytes per cycle.
// For 64 values of k and 64 columns there are 2 KiB of nibbles, which memory supplies in 340 cycles.
// These nibbles need 4 products (64 cycles) for every 16 rows.
// They also need 64 vector stores once, one per cycle.
// The loads, shifts and masks before those stores run
// in parallel (llvm-mca, sapphirerapids: 48 cycles with two stores per cycle).
// The epilogue of a group takes 224 vector instructions for 16 rows and 64 columns.
// At two per cycle, that is 112 cycles.
// So if memory is not the limit, epilogues limit groups of 32, and products limit groups of 128.
// With up to 16 rows, all this work fits into the time that memory takes, if the two overlap.
// The order of work is therefore:
// - The first 16 rows leave the unpacked bytes in a panel.
//   Each step is unpacked before the previous step is multiplied,
//   so no tile is loaded from bytes that were stored just before.
// - The epilogue of a group comes after the products of the next group have started.
// - Further rows are multiplied by the panel of 512 values of k, 32 rows at a time.
//   Each set of 32 rows passes over all groups of the panel before the next 32 rows start.
//   So the totals of 32 rows (4 KiB for half the columns) stay in L1.
//   The totals of 512 rows (128 KiB) would pass through L2 once per group.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512vnni/dots.h"
#include "kernels/vnni/groups.h"
#include "kernels/vnni/schemes.h"

namespace qcts::amx {
namespace {

// A group of up to 32 values of k is one step of half the size. All other groups consist of whole steps.
[[maybe_unused]] constexpr int64_t byte_step_k(int64_t k) { return k <= 32 ? 32 : 64; }

struct NibbleTiles : vnni::IntxNibbles {
  static constexpr int64_t pad_k(int64_t group) { return byte_step_k(group); }
};
struct ByteTiles : vnni::IntxBytes {
  static constexpr int64_t pad_k(int64_t group) { return byte_step_k(group); }
};

constexpr int64_t kPanelK = 64 * kChunkSteps, kPanelBytes = kPanelK * kColumns;
// rows at a time; the 32 registers hold 16 sums, 4 values of x, a scale and a pair
constexpr int kEpilogueRows = 4;

[[gnu::always_inline]] inline void ask_ahead(const uint8_t* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at + kPrefetchBytes), _MM_HINT_T0);
}

// Unpacks the nibbles of `k` consecutive values of k to bytes.
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

// Yields the steps of a packed panel in order.
// Prefetches the bytes 8 KiB ahead, in the order of their addresses.
template <int kQuads>
class Feed {
 public:
  // `panel` is a ring whose size is a power of two.
  // It holds the whole packed panel if later rows need that panel.
  // Otherwise it holds two steps, which stay in L1.
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
  // Returns the tiles of a step, after it has unpacked the step that follows.
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

// Does the same as multiply_one, but takes its steps from a feed.
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

// A packed panel whose codes are bytes. They begin at `tiles`; the next group begins tiles_bytes later.
struct GroupStep {
  const vnni::PackedPanel* packed;
  int64_t k;  // values of k in a group
  const uint8_t* tiles;
  int64_t tiles_bytes;
  vnni::Sums sums;

  // Returns the operands for one group and the rows that start at m.
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

// Applies the epilogue to the sums of kRows rows, starting at m, and of V vectors of columns.
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
void tiles_epilogue(const GroupStep& step, int64_t g, int64_t m, int64_t rows, int first,
                    const int32_t* sums) {
  const vnni::Epilogue epilogue = step.epilogue(g);
  int64_t row = 0;
  for (; row + kEpilogueRows <= rows; row += kEpilogueRows)
    rows_epilogue<kEpilogueRows, V>(epilogue, m + row, first, sums + row * V * avx512::kLanes);
  for (; row < rows; ++row) rows_epilogue<1, V>(epilogue, m + row, first, sums + row * V * avx512::kLanes);
}

// Calls multiply(g, sums, ld_bytes) for each group of a packed panel,
// for V vectors of columns and up to 8 / V tiles of rows.
// There are two buffers of sums: one is read while the other is filled.
template <int V, class Multiply>
void multiply_groups(const GroupStep& step, int64_t m, int64_t rows, int first, const Multiply& multiply) {
  if (step.packed->epilogue == nullptr)
    return multiply(0, reinterpret_cast<char*>(&step.sums[m][first * avx512::kLanes]), kRowBytes);
  alignas(64) int32_t sums[2][2 * kTileRows * 2 * avx512::kLanes];
  for (int64_t g = 0; g < step.packed->groups; ++g) {
    multiply(g, reinterpret_cast<char*>(sums[g % 2]), 64 * V);
    if (g > 0) tiles_epilogue<V>(step, g - 1, m, rows, first, sums[(g - 1) % 2]);
  }
  const int64_t last = step.packed->groups - 1;
  tiles_epilogue<V>(step, last, m, rows, first, sums[last % 2]);
}

// Multiplies the rows after the first 16.
[[maybe_unused]] void multiply_rest(const GroupStep& step, int64_t rows) {
  const int64_t pairs = (rows - 1) / kTileRows / 2;
  for (int first = 0; first < 4; first += 2)
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t m = kTileRows + i * 2 * kTileRows, left = rows - m;
      multiply_groups<2>(step, m, left < 2 * kTileRows ? left : 2 * kTileRows, first,
                         [&](int64_t g, char* sums, int64_t ld_bytes) {
                           const Operands of = step.operands(g, m);
                           multiply_two<false>(of, first * 64, static_cast<const char*>(of.x), sums, ld_bytes,
                                               false);
                         });
    }
  const int64_t m = kTileRows + pairs * 2 * kTileRows;
  if (m >= rows) return;
  multiply_groups<4>(step, m, rows - m, 0, [&](int64_t g, char* sums, int64_t ld_bytes) {
    const Operands of = step.operands(g, m);
    multiply_one<false>(of, static_cast<const char*>(of.x), sums, ld_bytes, false);
  });
}

struct IntxTiles {
  static constexpr int kRows = amx::kRows;

  static constexpr int64_t chunk_steps(int quads, int64_t) { return kPanelK / 4 / quads; }
  static int tail_ahead_bytes(bool prefetches, int64_t) { return prefetches ? vnni::kPrefetchBytes : 0; }
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
    GroupStep step = {&packed, k, kQuads == 2 ? panel : packed.codes,
                      kQuads == 2 ? k * kColumns : packed.bytes, sums};
    Feed<kQuads> feed(packed, k, panel, rows <= kTileRows ? 2 * amx::kStepBytes : kPanelBytes);
    multiply_groups<4>(step, 0, rows < kTileRows ? rows : kTileRows, 0,
                       [&](int64_t g, char* to, int64_t ld_bytes) {
                         multiply_fed(step.operands(g, 0), &feed, to, ld_bytes);
                       });
    if (rows > kTileRows) multiply_rest(step, rows);
  }
};

}  // namespace
}  // namespace qcts::amx
