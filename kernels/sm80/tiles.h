// SPDX-License-Identifier: BSD-3-Clause
// How a warp walks over a row so that every access moves 16 bytes a lane and whole sectors a warp, both for
// floats and for byte codes. A tile has 512 elements. Floats are in kBytes segments of 32 chunks of 16 bytes:
// lane l has chunk l of each segment. The codes of a tile are 32 chunks of 16 bytes as well, of which lane l
// has chunk (l % kBytes) * 32 / kBytes + l / kBytes: the codes of segment l % kBytes that belong to lane l
// and its neighbours in a group of kBytes lanes. So the exchange between the two is a transposition in that
// group.
#pragma once

#include "kernels/sm80/elements.h"

namespace qcts::sm80 {
namespace {

constexpr int kTile = 512;

template <class T>
struct Tile {
  static constexpr int kSegments = T::kBytes;
  // Words of codes, one byte each, for a chunk of floats: 1 or 2.
  static constexpr int kCodeWords = T::kChunk / 4;

  // The first element, within the tile, of this lane's chunk of floats in a segment, and of its 16 codes.
  static QCTS_DEVICE int first_float(int segment) {
    return (segment * 32 + static_cast<int>(lane_index())) * T::kChunk;
  }
  static QCTS_DEVICE int first_code() {
    const int lane = static_cast<int>(lane_index());
    return ((lane % kSegments) * (32 / kSegments) + lane / kSegments) * 16;
  }

  // Turns codes by segment (of this lane's floats) into 16 consecutive codes, or back: word group i of lane l
  // becomes group l of lane i, within kSegments lanes. All lanes call it.
  static QCTS_DEVICE void exchange(uint32_t (&words)[4]) {
    const uint32_t lane = lane_index();
    QCTS_UNROLL
    for (int step = 1; step < kSegments; step *= 2) {
      const bool upper = (lane & static_cast<uint32_t>(step)) != 0;
      QCTS_UNROLL
      for (int i = 0; i < kSegments; ++i) {
        if ((i & step) != 0) continue;
        QCTS_UNROLL
        for (int w = 0; w < kCodeWords; ++w) {
          uint32_t& low = words[i * kCodeWords + w];
          uint32_t& high = words[(i | step) * kCodeWords + w];
          const uint32_t got = shuffle_xor(upper ? low : high, static_cast<uint32_t>(step));
          if (upper)
            low = got;
          else
            high = got;
        }
      }
    }
  }
};

QCTS_DEVICE int8_t code_byte(uint32_t word, int i) { return static_cast<int8_t>(word >> (8 * i)); }

}  // namespace
}  // namespace qcts::sm80
