// SPDX-License-Identifier: BSD-3-Clause
// How W is read from memory, for variants of `linear`.
//
// One row of x reads W in order, once. A Zen 3 core has some two dozen lines on their way, and one stream
// with a prefetch 4 KiB ahead does not keep them busy: it stands at the page's end and at each bank in turn.
// Four blocks of columns, far from each other, read 1 KiB in turn and prefetched 1 KiB ahead, do (int8, m =
// 1, cold: 21.5 GB/s, where one stream had 15.5 and a plain read of four streams 23; eight streams 17.5; 512
// bytes ahead 17.5, 2 KiB 19.4). The sums of 1 KiB's worth of k are kept between turns: 16 loads and stores
// to some 400 operations. Kernels that decoding bounds lose by it (fp8 0.88 times, nf4 0.92 times):
// linear.h has one stream. Other cores read one stream better (WeightReading,
// kernels/machine/weight_reading.h).
//
// Several rows pass over a part of W more than once, each time for some of its columns. Where the first pass
// asks memory for all that comes next, the others leave it idle; so each asks for its share, far ahead. One
// thread of an EPYC Zen 4, 4096 x 4096 cold, all asked for by the first pass and in shares, m = 2, 4 and 16:
// int8 with AVX2 1359 us and 782, 1881 and 1026, 4470 and 3885; with dynamic x 1183 and 736, 2189 and 1288,
// 4989 and 3617; 4 bits in groups of 128 with dynamic x 729 and 638, 1572 and 917, 3225 and 2639.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "kernels/machine/weight_reading.h"

namespace qcts::avx2 {
namespace {

// Ahead, in a stream that is alone: a core's prefetcher stops at the end of a page, the stream goes on.
constexpr int kPrefetchBytes = 4096;
// Ahead, into L2, of several passes over a part of 4 to 16 KiB: L1 has no room for two such. (On the Zen 4
// core half of it takes 1.25 times as long for parts of 16 KiB, as much for others, and twice as much is no
// better. Of passes over 4 KiB and less by 8da4w kPrefetchBytes is better: m = 2, 466 us and 697.)
constexpr int kFarBytes = 32768;
constexpr int kStreams = 4, kStreamBytes = 1024, kStreamPrefetchBytes = 1024;

[[gnu::always_inline]] inline void prefetch(const uint8_t* at, int ahead) {
  if (ahead < kFarBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T0);
  } else {
    _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T1);
  }
}

// What one pass of kPasses over codes fetches meanwhile, a part at each of its steps, kAhead bytes ahead: its
// share of as many bytes, or nothing if that is 0.
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

// multiply(n), n how many bytes ahead it fetches: of codes that it passes over once (kOnce) as this machine
// likes it, of others far.
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

// Where that is this machine's way, together(block, apart): that block and those 1, 2 and 3 times `apart`
// behind it; alone(block): the rest.
template <class Together, class Alone>
void in_streams(int64_t first, int64_t last, Together together, Alone alone) {
  const bool in_turn = weight_reading() == WeightReading::side_by_side;
  const int64_t apart = in_turn ? (last - first) / kStreams : 0;
  for (int64_t block = first; block < first + apart; ++block) together(block, apart);
  for (int64_t block = first + kStreams * apart; block < last; ++block) alone(block);
}

}  // namespace
}  // namespace qcts::avx2
