// How one row of x reads W, for the AVX2 variants of `linear`, and for nothing else: every function has
// internal linkage.
//
// A core has some two dozen lines on their way from memory. One stream with a prefetch 4 KiB ahead does not
// keep them busy: it stands at the page's end and at each bank in turn. Four blocks of columns, far from each
// other, read 1 KiB in turn and prefetched 1 KiB ahead, do (EPYC Zen 3, int8, m = 1, cold: 21.5 GB/s, where
// one stream had 15.5 and a plain read of four streams 23; eight streams 17.5; 512 bytes ahead 17.5, 2 KiB
// 19.4). The sums of 1 KiB's worth of k are kept between turns: 16 loads and stores to some 400 operations.
// Kernels that decoding bounds lose by it (fp8 0.88 times, nf4 0.92 times): avx2_linear.h has one stream.
#pragma once

#include <cstdint>

namespace qcts::avx2 {
namespace {

// Ahead, in a stream that is alone: a core's prefetcher stops at the end of a page, the stream goes on.
constexpr int kPrefetchBytes = 4096;
constexpr int kStreams = 4, kStreamBytes = 1024, kStreamPrefetchBytes = 1024;

// together(block, apart): that block and those 1, 2 and 3 times `apart` behind it; alone(block): the rest.
template <class Together, class Alone>
void in_streams(int64_t first, int64_t last, Together together, Alone alone) {
  const int64_t apart = (last - first) / kStreams;
  for (int64_t block = first; block < first + apart; ++block) together(block, apart);
  for (int64_t block = first + kStreams * apart; block < last; ++block) alone(block);
}

}  // namespace
}  // namespace qcts::avx2
