// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel for kernels/vnni/int8_linear.h, for 4-bit codes on processors without a byte dot product.
//
// vpmaddubsw multiplies 32 pairs of bytes and adds neighbouring products in 16 bits, where it saturates.
// 8-bit codes would saturate.
// With 4-bit codes, eight sums of two products of 15 and -128 are -30720, which fits.
// So a code is an unsigned nibble, and products of 32 values of k of a column are added in 16 bits.
// vpmaddwd then widens the sums to 32 bits. So 32 products take 2 operations and an eighth of two more.
// Factors of 16 bits would take 4 operations, and the weight would have to be widened.
// With more than 6 rows, the first 6 rows store the nibbles that they decode in a panel of bytes.
// The panel holds 256 values of k (16 KiB) at a time.
#pragma once

#include <type_traits>

#include "kernels/avx2/byte_products.h"
#include "kernels/avx2/dots/dot_lanes.h"
#include "kernels/avx2/streams.h"
#include "kernels/vnni/groups.h"
#include "kernels/vnni/schemes.h"

namespace qcts::avx2 {
namespace {

constexpr int kMaxRows = 6;  // rows at a time
constexpr int kTerms = 8;    // sums of two products that fit into 16 bits

struct NibbleLanes : DotLanes {
  // Leaves room for 8 to 12 sums, the codes of these sums and one x.
  static constexpr int vectors_of(int rows) { return rows == 1 ? 8 : rows == 2 ? 4 : 2; }
  static Ints dot_pairs(Ints sum, Ints weights, Ints x) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(weights, x));
  }
};

// Returns the codes of quad `i` of a step for the columns of one vector.
template <int kQuads>
[[gnu::always_inline]] inline __m256i nibbles(const uint8_t* at, int vector, int i) {
  const __m256i bytes = NibbleLanes::load(at + vector * 4 * kLanes);
  if (kQuads == 1) return bytes;
  return NibbleLanes::low_nibbles(i == 0 ? bytes : NibbleLanes::shift_right_4(bytes));
}

template <int kAhead, int V>
using PassShare = Share<kAhead, vnni::kColumns / kLanes / V, vnni::kStepBytes>;

// Adds the products of kSteps steps to the sums of M rows and V vectors.
// The products of these steps fit into 16 bits.
// The loops are unrolled, because the compiler kept sums in memory when a loop carried them.
template <int kQuads, int M, int V, int kSteps, bool kFill, class SomeShare>
[[gnu::always_inline]] inline void add_products(const uint8_t* at, uint8_t* panel, int first, const int8_t* x,
                                                int64_t ldx, SomeShare& share, __m256i (&sum)[M][V]) {
  static_assert(kSteps * kQuads <= kTerms);
  __m256i pairs[M][V];
#pragma GCC unroll 8
  for (int quad = 0; quad < kSteps * kQuads; ++quad) {
    if (quad % kQuads == 0) share.fetch();
    __m256i codes[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      codes[v] = nibbles<kQuads>(at + quad / kQuads * vnni::kStepBytes, first + v, quad % kQuads);
      if (kFill) NibbleLanes::store(panel + quad * vnni::kStepBytes + (first + v) * 4 * kLanes, codes[v]);
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const __m256i four = broadcast_four(x + m * ldx + 4 * quad);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        pairs[m][v] =
            quad == 0 ? _mm256_maddubs_epi16(codes[v], four) : add_pairs(pairs[m][v], codes[v], four);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      sum[m][v] = NibbleLanes::dot_pairs(sum[m][v], pairs[m][v], _mm256_set1_epi16(1));
}

// Does the same for one row, step by step and vector by vector,
// because a step has more codes than there are registers.
template <int kQuads, int V, int kSteps, class SomeShare>
[[gnu::always_inline]] inline void add_row_products(const uint8_t* at, const int8_t* x, SomeShare& share,
                                                    __m256i (&sum)[1][V]) {
  static_assert(kSteps * kQuads <= kTerms);
  __m256i pairs[V];
#pragma GCC unroll 8
  for (int step = 0; step < kSteps; ++step, at += vnni::kStepBytes, x += 4 * kQuads) {
    share.fetch();
    const __m256i four = broadcast_four(x), next = kQuads == 2 ? broadcast_four(x + 4) : four;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const __m256i codes = nibbles<kQuads>(at, v, 0);
      pairs[v] = step == 0 ? _mm256_maddubs_epi16(codes, four) : add_pairs(pairs[v], codes, four);
      if (kQuads == 2) pairs[v] = add_pairs(pairs[v], nibbles<kQuads>(at, v, 1), next);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) sum[0][v] = NibbleLanes::dot_pairs(sum[0][v], pairs[v], _mm256_set1_epi16(1));
}

// Multiplies M rows, starting at `from`, by all columns. Prefetches kAhead bytes ahead, unless kAhead is 0.
template <int kQuads, int M, bool kFill, int kAhead>
[[gnu::noinline]] void multiply_nibbles(const vnni::PackedPanel& packed, uint8_t* panel, int64_t from,
                                        vnni::Sums all_sums) {
  const vnni::Sums sums = all_sums + from;
  // Copies are needed, because the compiler must assume that a byte of the panel may belong to `packed`.
  const int64_t ldx = packed.ldx, steps = packed.steps;
  const bool begins = packed.first;
  constexpr int V = NibbleLanes::vectors_of(M), kMax = kTerms / kQuads;
  for (int first = 0; first < vnni::kColumns / kLanes; first += V) {
    PassShare<kAhead, V> share(packed.codes, steps, first / V);
    const int8_t* x = packed.x + from * ldx;
    const uint8_t* at = packed.codes;
    uint8_t* to = panel;
    __m256i sum[M][V];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        sum[m][v] = begins ? _mm256_setzero_si256() : NibbleLanes::load(&sums[m][(first + v) * kLanes]);
    const auto add = [&]<int kSteps>(std::integral_constant<int, kSteps>) {
      if constexpr (M == 1) {
        add_row_products<kQuads, V, kSteps>(at, x, share, sum);
      } else {
        add_products<kQuads, M, V, kSteps, kFill>(at, to, first, x, ldx, share, sum);
      }
      at += kSteps * vnni::kStepBytes;
      to += kFill ? kSteps * kQuads * vnni::kStepBytes : 0;
      x += kSteps * kQuads * 4;
    };
    int64_t step = 0;
    for (; step + kMax <= steps; step += kMax) add(std::integral_constant<int, kMax>());
    for (; step < steps; ++step) add(std::integral_constant<int, 1>());
    if (packed.epilogue != nullptr) {
      vnni::group_epilogue<NibbleLanes, M, V>(*packed.epilogue, from, first, sum);
      continue;
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) NibbleLanes::store(&sums[m][(first + v) * kLanes], sum[m][v]);
  }
}

struct NibbleDots {
  static constexpr int kRows = 64;
  static constexpr int64_t kPanelBytes = 16384;

  static constexpr int64_t chunk_steps(int quads, int64_t) { return kPanelBytes / vnni::kStepBytes / quads; }
  static int64_t padded_rows(int64_t m) { return m; }
  // Several rows take several passes over the codes. Each pass prefetches its share.
  static int tail_ahead_bytes(bool prefetches, int64_t rows) {
    return prefetches || rows > 1 ? kPrefetchBytes : 0;
  }
  static constexpr int64_t chunk_groups(int64_t) { return 1; }
  static void open(const vnni::Layout&, int64_t) {}
  static void close() {}

  // Multiplies as many rows as fit, starting at `from`, and returns their number.
  template <int kQuads>
  static int64_t multiply_some(const vnni::PackedPanel& packed, int64_t from, int64_t rows, vnni::Sums sums) {
    constexpr int kAhead = kQuads == 2 ? kPrefetchBytes : 0;
    const bool follows = weight_reading() == WeightReading::followed;
    const decltype(&multiply_nibbles<kQuads, 1, false, kAhead>) exactly[kMaxRows] = {
        follows ? multiply_nibbles<kQuads, 1, false, 0> : multiply_nibbles<kQuads, 1, false, kAhead>,
        multiply_nibbles<kQuads, 2, false, kAhead>,
        multiply_nibbles<kQuads, 3, false, kAhead>,
        multiply_nibbles<kQuads, 4, false, kAhead>,
        multiply_nibbles<kQuads, 5, false, kAhead>,
        multiply_nibbles<kQuads, 6, false, kAhead>};
    const int64_t some = rows - from < kMaxRows ? rows - from : kMaxRows;
    exactly[some - 1](packed, nullptr, from, sums);
    return some;
  }

  template <class Scheme>
  static void multiply(const vnni::PackedPanel& packed, int64_t rows, vnni::Sums sums) {
    static_assert(Scheme::kQuads == 2);
    if (rows <= kMaxRows) {
      multiply_some<2>(packed, 0, rows, sums);
      return;
    }
    alignas(64) uint8_t panel[kPanelBytes];
    multiply_nibbles<2, kMaxRows, true, kPrefetchBytes>(packed, panel, 0, sums);
    vnni::PackedPanel rest = packed;
    rest.codes = panel;
    rest.steps *= 2;
    for (int64_t m = kMaxRows; m < rows;) m += multiply_some<1>(rest, m, rows, sums);
  }

  // Multiplies one row by kStreams blocks side by side. The blocks are `apart` from each other.
  template <class Scheme>
  static void multiply_side_by_side(const vnni::LinearCall& call, int64_t block, int64_t apart) {
    constexpr int64_t kMax = kStreamBytes / vnni::kStepBytes, kColumns = vnni::kColumns;
    const vnni::Layout& layout = call.layout;
    alignas(64) int32_t sums[kStreams][kColumns];
    alignas(64) float totals[kStreams][kColumns] = {};
    const uint8_t* codes = call.prepared + block * layout.block_bytes;
    const int64_t count = layout.groups, steps = layout.code_bytes / vnni::kStepBytes;
    for (int64_t g = 0; g < count; ++g) {
      for (int64_t step = 0; step < steps; step += kMax) {
        const bool last = step + kMax >= steps;
        for (int s = 0; s < kStreams; ++s) {
          const uint8_t* at = codes + s * apart * layout.block_bytes + g * layout.group_bytes;
          const vnni::Epilogue epilogue = {at + layout.code_bytes,
                                           layout.scale_dtype,
                                           layout.scale_bytes,
                                           layout.pairs > 1,
                                           call.x_sums + g,
                                           count,
                                           totals + s};
          const vnni::PackedPanel packed = {.codes = at + step * vnni::kStepBytes,
                                            .groups = 1,
                                            .steps = last ? steps - step : kMax,
                                            .bytes = 0,
                                            .x = call.x + g * layout.padded_group + step * 8,
                                            .ldx = 0,
                                            .first = step == 0,
                                            .epilogue = last && count > 1 ? &epilogue : nullptr,
                                            .prefetches = false};
          multiply_nibbles<2, 1, false, kStreamPrefetchBytes>(packed, nullptr, 0, sums + s);
          for (int64_t line = layout.code_bytes; last && line < layout.group_bytes; line += 64)
            prefetch(at + line, kStreamPrefetchBytes);
        }
      }
    }
    for (int s = 0; s < kStreams; ++s) {
      const int64_t at = block + s * apart;
      vnni::Columns columns;
      vnni::load_columns<NibbleLanes, Scheme>(
          call, call.prepared + at * layout.block_bytes + layout.code_bytes, at * kColumns, &columns);
      vnni::store_rows<NibbleLanes, Scheme>(call, columns, at, 0, 1, sums + s, totals + s);
    }
  }

  template <class Scheme>
  static void multiply_row(const vnni::LinearCall& call, int64_t first, int64_t last) {
    in_streams(
        first, last, [&](int64_t block, int64_t apart) { multiply_side_by_side<Scheme>(call, block, apart); },
        [&](int64_t block) { vnni::multiply_block<NibbleLanes, Scheme, NibbleDots>(call, block, 0, 1); });
  }
};

}  // namespace
}  // namespace qcts::avx2
