// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel for kernels/vnni/int8_linear.h that uses VPDPBUSD.
// Sums of up to 6 rows and several vectors of columns stay in registers.
// Each weight is loaded once for all rows, and each x is broadcast once for all columns.
// With more rows, the first 6 leave unpacked nibbles in a panel of bytes, 256 values of k (16 KiB) at a time.
// Codes that are already bytes are their own panel, 128 or 1024 values of k (8 or 64 KiB) at a time.
// With byte codes, 7 to 11 rows are split in halves.
// If 7 to 11 rows were split into 6 and the rest, the first pass would leave memory idle,
// and the second would be too short for L2 to keep up.
// For m = 8 of 4096 x 4096 on an EPYC Zen 4,
// halves are 1.5 times as fast on one thread and 1.15 times on two.
// The last rows are one pass: m = 3 as 2 and 1 took 1.3 times as long.
//
// A single pass prefetches 8 KiB ahead, except on a machine that follows streams itself.
// If several passes read a panel, the first two prefetch 64 KiB ahead, into L2 only.
// With a shorter distance,
// lines that the first pass was about to read arrived too late while the other passes left memory idle.
// With prefetches into L1, lines of the next panel evicted this panel.
// Omitting the prefetch of the data that follows the codes of a group cost 8da4w a sixth of its speed.
// For int8 at m = 16 of 4096 x 4096 on an EPYC Zen 4, the far prefetch raised the speed
// from 0.64 to 0.86 of the peak of the multipliers on one thread, and from 0.60 to 0.82 on two.
// Zen 5 multiplies twice as fast,
// so it cannot make up for the time in which a pass of 64 KiB leaves memory idle.
// On Zen 5, passes of 8 KiB prefetch 16 KiB ahead.
// On one thread, short passes raised the share of the stream's speed from 0.68 to 0.87 at m = 8,
// and from 0.65 to 0.78 at m = 12.
// At m = 16, short passes raised the share of the multipliers' peak from 0.70 to 0.80.
// Passes of 4 KiB gave 0.72, passes of 16 KiB gave 0.79,
// and passes of 8 KiB prefetched 64 KiB ahead gave 0.76. More than three passes multiply long enough:
// m = 512 reaches 0.83 with parts of 8 KiB and 0.89 with parts of 64 KiB.
#pragma once

#include "kernels/vnni/groups.h"
#include "kernels/vnni/schemes.h"

namespace qcts::vnni {
namespace {

constexpr int kMaxRows = 6;  // rows at a time

// Returns the unsigned codes of quad `i` of a step for the columns of one vector.
template <class Vector, int kQuads>
[[gnu::always_inline]] inline typename Vector::Ints unsigned_codes(const uint8_t* at, int vector, int i) {
  const auto bytes = Vector::load(at + vector * 4 * Vector::kLanes);
  if (kQuads == 1) return bytes;
  return Vector::low_nibbles(i == 0 ? bytes : Vector::shift_right_4(bytes));
}

// The work of a pass over the codes, except for multiplying.
struct Pass {
  uint8_t* panel;        // if kFill is true, codes are written to it as bytes
  const uint8_t* ahead;  // the bytes to prefetch during the multiplication
  int64_t line;          // size in bytes of a line: 64, or 0 after everything has been prefetched
};
// Prefetches kCount lines per step into kCache.
template <int kCount, _mm_hint kCache>
struct Lines {
  static constexpr int kLines = kCount;
  static void prefetch_line(const uint8_t* line) {
    _mm_prefetch(reinterpret_cast<const char*>(line), kCache);
  }
};

// Multiplies M rows, starting at `from`, by all columns.
template <class Vector, int kQuads, int M, class Prefetch, bool kFill>
[[gnu::noinline]] void multiply_rows(const PackedPanel& packed, const Pass& pass, int64_t from,
                                     Sums all_sums) {
  const Sums sums = all_sums + from;
  // Copies are needed, because the compiler must assume that a byte of the panel may belong to `packed`.
  const int64_t ldx = packed.ldx, steps = packed.steps;
  const int8_t* x_rows = packed.x + from * ldx;
  constexpr int V = Vector::vectors_of(M);
  for (int first = 0; first < kColumns / Vector::kLanes; first += V) {
    typename Vector::Ints sum[M][V];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        sum[m][v] = packed.first ? Vector::zero() : Vector::load(&sums[m][(first + v) * Vector::kLanes]);
    const uint8_t *codes_at = packed.codes, *ahead = pass.ahead;
    uint8_t* panel = pass.panel;
    for (int64_t step = 0; step < steps; ++step, codes_at += kStepBytes) {
      const uint8_t* at = codes_at;
      if (first == 0)
#pragma GCC unroll 4
        for (int line = 0; line < Prefetch::kLines; ++line, ahead += pass.line)
          Prefetch::prefetch_line(ahead);
#pragma GCC unroll 2
      for (int i = 0; i < kQuads; ++i) {
        // Loads again for the other nibbles. If they stayed in registers, they would push sums into memory.
        asm("" : "+r"(at));
        typename Vector::Ints codes[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) codes[v] = unsigned_codes<Vector, kQuads>(at, first + v, i);
        if (kFill) {
#pragma GCC unroll 8
          for (int v = 0; v < V; ++v) Vector::store(panel + (first + v) * 4 * Vector::kLanes, codes[v]);
          panel += kStepBytes;
        }
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          const auto x = Vector::broadcast(x_rows + m * ldx + 4 * (step * kQuads + i));
#pragma GCC unroll 8
          for (int v = 0; v < V; ++v) sum[m][v] = Vector::dot(sum[m][v], codes[v], x);
        }
      }
    }
    if (packed.epilogue != nullptr) {
      group_epilogue<Vector, M, V>(*packed.epilogue, from, first, sum);
      continue;
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) Vector::store(&sums[m][(first + v) * Vector::kLanes], sum[m][v]);
  }
}

// Multiplies as many rows as fit, starting at `from`, and returns their number.
template <class Vector, int kQuads, class Prefetch>
int64_t multiply_some(const PackedPanel& packed, const Pass& pass, int64_t from, int64_t rows, Sums sums) {
  constexpr decltype(&multiply_rows<Vector, kQuads, 1, Prefetch, false>) kExactly[kMaxRows] = {
      multiply_rows<Vector, kQuads, 1, Prefetch, false>, multiply_rows<Vector, kQuads, 2, Prefetch, false>,
      multiply_rows<Vector, kQuads, 3, Prefetch, false>, multiply_rows<Vector, kQuads, 4, Prefetch, false>,
      multiply_rows<Vector, kQuads, 5, Prefetch, false>, multiply_rows<Vector, kQuads, 6, Prefetch, false>};
  const int64_t some = rows - from < kMaxRows ? rows - from : kMaxRows;
  kExactly[some - 1](packed, pass, from, sums);
  return some;
}

template <class Vector>
struct Dots {
  static constexpr int kRows = 64;
  static constexpr int64_t kPanelBytes = 16384, kFarBytes = 65536, kNearBytes = 8192;

  static bool stays_near(int64_t rows) {
    return rows <= 3 * kMaxRows && weight_reading() != WeightReading::followed;
  }
  static int64_t chunk_steps(int quads, int64_t rows) {
    if (quads == 2) return kPanelBytes / kStepBytes / 2;
    return (stays_near(rows) ? kNearBytes : kFarBytes) / kStepBytes;
  }
  static int64_t padded_rows(int64_t m) { return m; }
  static int tail_ahead_bytes(bool prefetches, int64_t) { return prefetches ? kPrefetchBytes : 0; }
  static constexpr int64_t chunk_groups(int64_t) { return 1; }
  static void open(const Layout&, int64_t) {}
  static void close() {}

  template <class Scheme>
  static void multiply(const PackedPanel& packed, int64_t rows, Sums sums) {
    constexpr int kQuads = Scheme::kQuads;
    if (rows <= kMaxRows) {
      const int64_t line = packed.prefetches ? 64 : 0;
      const Pass alone = {nullptr, packed.codes + line / 64 * kPrefetchBytes, line};
      for (int64_t m = 0; m < rows;)
        m += multiply_some<Vector, kQuads, Lines<4, _MM_HINT_T0>>(packed, alone, m, rows, sums);
      return;
    }
    alignas(64) uint8_t panel[kQuads == 2 ? kPanelBytes : 64];
    const uint8_t* ahead = packed.codes + (kQuads == 1 && stays_near(rows) ? 2 * kNearBytes : kFarBytes);
    const uint8_t* ahead_end = ahead + packed.steps * kStepBytes;
    for (int64_t line = packed.steps * kStepBytes; line < packed.bytes; line += 64)
      Lines<1, _MM_HINT_T1>::prefetch_line(ahead + line);
    int64_t m = kMaxRows;
    if (kQuads == 1 && rows < 2 * kMaxRows) {
      m = multiply_some<Vector, 1, Lines<2, _MM_HINT_T1>>(packed, {nullptr, ahead, 64}, 0, (rows + 1) / 2,
                                                          sums);
    } else {
      multiply_rows<Vector, kQuads, kMaxRows, Lines<2, _MM_HINT_T1>, kQuads == 2>(packed, {panel, ahead, 64},
                                                                                  0, sums);
    }
    PackedPanel rest = packed;
    if (kQuads == 2) rest.codes = panel, rest.steps *= 2;
    using Prefetch = Lines<kQuads == 2 ? 1 : 2, _MM_HINT_T1>;
    while (m < rows) {
      ahead += 2 * packed.steps * 64;
      const Pass pass = {nullptr, ahead, ahead < ahead_end ? 64 : 0};
      m += multiply_some<Vector, 1, Prefetch>(rest, pass, m, rows, sums);
    }
  }
};

}  // namespace
}  // namespace qcts::vnni
