// SPDX-License-Identifier: BSD-3-Clause
// How variants of `linear` read W from memory.
//
// One row of x reads W in order, once. A Zen 3 core can have some two dozen cache lines in flight. A single
// stream with a prefetch 4 KiB ahead does not use them all: it stalls at the end of a page and at one memory
// bank after the other. Four blocks of columns, far from each other, read 1 KiB in turn and prefetched 1 KiB
// ahead, do use them (int8, m = 1, cold: 21.5 GB/s, where one stream had 15.5 and a plain read of four
// streams 23; eight streams 17.5; 512 bytes ahead 17.5, 2 KiB 19.4). Between turns the sums of 1 KiB's worth
// of k are stored: 16 loads and stores for some 400 operations. Kernels whose limit is decoding are slower
// that way (fp8 0.88 times as fast, nf4 0.92 times), so linear.h uses one stream. Other cores read one stream
// better (WeightReading, kernels/machine/weight_reading.h).
//
// Several rows pass over a part of W more than once, each time for some of its columns. If the first pass
// prefetches everything that comes next, memory is idle during the others; so each pass prefetches its share,
// far ahead. One thread of an EPYC Zen 4, 4096 x 4096 cold, in us, first with everything prefetched by the
// first pass and then in shares, for m = 2, 4 and 16: int8 with AVX2 1359 and 782, 1881 and 1026, 4470 and
// 3885; with dynamic x 1183 and 736, 2189 and 1288, 4989 and 3617; 4 bits in groups of 128 with dynamic x 729
// and 638, 1572 and 917, 3225 and 2639.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "kernels/machine/weight_reading.h"

namespace qcts::avx2 {
namespace {

// Prefetch distance of a single stream: the hardware prefetcher stops at the end of a page, the stream does
// not.
constexpr int kPrefetchBytes = 4096;
// Prefetch distance, into L2, of several passes over a part of 4 to 16 KiB: L1 has no room for two such
// parts. (On Zen 4 half the distance takes 1.25 times as long for parts of 16 KiB and as long for others;
// twice the distance is no better. For passes of 8da4w over 4 KiB or less kPrefetchBytes is better: m = 2,
// 466 us and 697.)
constexpr int kFarBytes = 32768;
constexpr int kStreams = 4, kStreamBytes = 1024, kStreamPrefetchBytes = 1024;

[[gnu::always_inline]] inline void prefetch(const uint8_t* at, int ahead) {
  if (ahead < kFarBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T0);
  } else {
    _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T1);
  }
}

// Prefetches one pass's share: of kPasses passes over codes, each fetches a part at each of its steps, kAhead
// bytes ahead; nothing if kAhead is 0.
template <int kAhead, int kPasses, int kStepBytes>
class Share {
 public:
  [[gnu::always_inline]] Share(const uint8_t* codes, int64_t steps, int pass)
      : at_(codes + pass * (steps * kStepBytes / kPasses)) {}
  [[gnu::always_inline]] void fetch() {
    if (kAhead == 0) return;
#pragma GCC unroll 4
    for (int line = 0; line < kStepBytes / kPasses; line += 64) prefetch(at_ + line, kAhead);
    at_ += kStepBytes / kPasses;
  }

 private:
  const uint8_t* at_;
};

// Calls multiply(n), where n is how many bytes ahead it prefetches: for codes that are passed over once
// (kOnce), the distance that suits this machine; for others, far.
template <bool kOnce, class Multiply>
void with_ahead(Multiply multiply) {
  if constexpr (!kOnce) {
    multiply(std::integral_constant<int, kFarBytes>());
  } else if (weight_reading() == WeightReading::followed) {
    multiply(std::integral_constant<int, 0>());
  } else {
    multiply(std::integral_constant<int, kPrefetchBytes>());
  }
}

// If streams suit this machine, calls together(block, apart) for the blocks `block` + 0, 1, 2 and 3 times
// `apart`, and alone(block) for the rest. Otherwise calls alone for all.
template <class Together, class Alone>
void in_streams(int64_t first, int64_t last, Together together, Alone alone) {
  const bool in_turn = weight_reading() == WeightReading::side_by_side;
  const int64_t apart = in_turn ? (last - first) / kStreams : 0;
  for (int64_t block = first; block < first + apart; ++block) together(block, apart);
  for (int64_t block = first + kStreams * apart; block < last; ++block) alone(block);
}

}  // namespace
}  // namespace qcts::avx2
