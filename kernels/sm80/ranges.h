// SPDX-License-Identifier: BSD-3-Clause
// The information that a quantizer needs about the elements that share a scale, as words that lanes and warps
// exchange. A range has
//   word[kWords]            at first, the words for no elements
//   add(x), merge(i, word)  functions that include an element, or word i of another range
#pragma once

#include "kernels/sm80/small_floats.h"
#include "kernels/sm80/stage.h"

namespace qcts::sm80 {
namespace {

// The largest magnitude. As integers, magnitudes have the order of the floats, and a NaN is above infinity.
struct Magnitude {
  static constexpr int kWords = 1;
  uint32_t word[1] = {0};
  QCTS_DEVICE void add(float x) { merge(0, bits_of(x) & kMagnitudeBits); }
  QCTS_DEVICE void merge(int, uint32_t other) { word[0] = other > word[0] ? other : word[0]; }
  QCTS_DEVICE float largest() const { return float_of(word[0] > kInfinityBits ? kQuietNan : word[0]); }
  QCTS_DEVICE float low() const { return -largest(); }
  QCTS_DEVICE float high() const { return largest(); }
};

// The least and the largest element. With kWithZero, 0 counts as an element. The words are integers in the
// order of the floats. In that order a NaN is beyond infinity, on one side or the other. If there is a NaN,
// both ends are NaN.
template <bool kWithZero>
struct MinMax {
  static constexpr int kWords = 2;
  uint32_t word[2] = {kWithZero ? 0 : 0x7FFFFFFFu, kWithZero ? 0 : 0x80000000u};
  // This function is its own inverse.
  static QCTS_DEVICE uint32_t ordered(uint32_t bits) { return bits ^ (bits >> 31 != 0 ? kMagnitudeBits : 0); }
  QCTS_DEVICE void add(float x) {
    const uint32_t key = ordered(bits_of(x));
    merge(0, key);
    merge(1, key);
  }
  QCTS_DEVICE void merge(int i, uint32_t other) {
    const bool less = static_cast<int32_t>(other) < static_cast<int32_t>(word[i]);
    if (less == (i == 0)) word[i] = other;
  }
  QCTS_DEVICE bool has_nan() const {
    return is_nan(float_of(ordered(word[0]))) || is_nan(float_of(ordered(word[1])));
  }
  QCTS_DEVICE float low() const { return float_of(has_nan() ? kQuietNan : ordered(word[0])); }
  QCTS_DEVICE float high() const { return float_of(has_nan() ? kQuietNan : ordered(word[1])); }
};

// Holds nothing, for a family whose scale is known before its kernel runs.
struct NoRange {
  static constexpr int kWords = 0;
  uint32_t word[1] = {0};
  QCTS_DEVICE void add(float) {}
  QCTS_DEVICE void merge(int, uint32_t) {}
};

// Gives each lane the range of its group of `lanes` lanes. All lanes of the warp call it.
template <class Range>
QCTS_DEVICE void merge_lanes(Range& range, uint32_t lanes) {
  for (uint32_t step = 1; step < lanes; step *= 2) {
    QCTS_UNROLL
    for (int i = 0; i < Range::kWords; ++i) range.merge(i, shuffle_xor(range.word[i], step));
  }
}

// Gives all threads of the block the range of the whole block. `range` must be equal in the lanes of a warp.
template <class Range>
QCTS_DEVICE void merge_warps(Range& range) {
  auto* of_warps = reinterpret_cast<uint32_t*>(shared_memory() + kAfterStages);
  if (lane_index() == 0) {
    QCTS_UNROLL
    for (int i = 0; i < Range::kWords; ++i)
      store_shared(of_warps + warp_index() * Range::kWords + static_cast<uint32_t>(i), range.word[i]);
  }
  sync_block();
  for (int warp = 0; warp < kBlockWarps; ++warp) {
    QCTS_UNROLL
    for (int i = 0; i < Range::kWords; ++i)
      range.merge(i, load_shared<uint32_t>(of_warps + warp * Range::kWords + i));
  }
}

}  // namespace
}  // namespace qcts::sm80
