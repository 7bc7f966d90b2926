// SPDX-License-Identifier: BSD-3-Clause
// Ways in which variants of `linear` read W from memory.
//
// One row of x reads W once, in order. A Zen 3 core can have about two dozen cache lines in flight.
// A single stream with a prefetch 4 KiB ahead does not use them all.
// Such a stream stalls at the end of each page and at one memory bank after the other.
// Four blocks of columns, far from each other, do use them all,
// if they are read 1 KiB in turn and prefetched 1 KiB ahead.
// For int8 at m = 1, cold, four streams had 21.5 GB/s,
// one stream had 15.5 GB/s, and a plain read of four streams had 23 GB/s.
// Eight streams had 17.5 GB/s. Prefetching 512 bytes ahead gave 17.5 GB/s, and 2 KiB ahead gave 19.4 GB/s.
// Between turns, the sums over 1 KiB of codes are stored: 16 loads and stores for about 400 operations.
// Kernels that are limited by decoding are slower that way (fp8 0.88 times as fast, nf4 0.92 times),
// so linear.h uses one stream.
// On other cores, one stream is faster (WeightReading, kernels/machine/weight_reading.h).
//
// Several rows pass over a part of W more than once, each time for some of its columns.
// If the first pass prefetches everything that comes next, memory is idle during the other passes.
// So each pass prefetches its share, far ahead.
// One thread of an EPYC Zen 4 took these times in us for 4096 x 4096 cold, at m = 2, 4 and 16.
// Each pair has two times: first with all prefetches in the first pass, then with a share in each pass.
//   int8 with AVX2: 1359 and 782, 1881 and 1026, 4470 and 3885
//   int8 with dynamic x: 1183 and 736, 2189 and 1288, 4989 and 3617
//   4 bits in groups of 128 with dynamic x: 729 and 638, 1572 and 917, 3225 and 2639
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "kernels/machine/weight_reading.h"

namespace qcts::avx2 {
namespace {

// Prefetch distance of a single stream.
// The hardware prefetcher stops at the end of a page, but the stream continues on the next page.
constexpr int kPrefetchBytes = 4096;
// Prefetch distance into L2 for several passes over a part of 4 to 16 KiB. L1 has no room for two such parts.
// On Zen 4, half the distance takes 1.25 times as long for parts of 16 KiB and as long for other parts.
// Twice the distance is no better.
// For passes of 8da4w over 4 KiB or less, kPrefetchBytes is better (m = 2: 466 us instead of 697 us).
constexpr int kFarBytes = 32768;
constexpr int kStreams = 4, kStreamBytes = 1024, kStreamPrefetchBytes = 1024;

[[gnu::always_inline]] inline void prefetch(const uint8_t* at, int ahead) {
  if (ahead < kFarBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T0);
  } else {
    _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T1);
  }
}

// Prefetches the share of one pass. There are kPasses passes over the codes.
// Each pass fetches a part at each of its steps, kAhead bytes ahead. If kAhead is 0, nothing is fetched.
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

// Calls multiply(n), where n is the prefetch distance in bytes.
// If codes are passed over only once (kOnce), n is the distance that suits this machine.
// Otherwise n is kFarBytes.
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

// If streams suit this machine, calls together(block, apart) for each four blocks:
// `block` plus 0, 1, 2 and 3 times `apart`.
// Then it calls alone(block) for the rest. Otherwise it calls alone(block) for all blocks.
template <class Together, class Alone>
void in_streams(int64_t first, int64_t last, Together together, Alone alone) {
  const bool in_turn = weight_reading() == WeightReading::side_by_side;
  const int64_t apart = in_turn ? (last - first) / kStreams : 0;
  for (int64_t block = first; block < first + apart; ++block) together(block, apart);
  for (int64_t block = first + kStreams * apart; block < last; ++block) alone(block);
}

}  // namespace
}  // namespace qcts::avx2
