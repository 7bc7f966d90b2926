// SPDX-License-Identifier: BSD-3-Clause
// A warp moves codes and floats so that each access has 16 bytes per lane and whole sectors per warp. A tile
// has 512 bytes of codes. Its floats are segments of 32 chunks of 16 bytes, and lane l has chunk l of each.
// Its codes are 32 chunks of 16 bytes as well, and lane l has chunk l. Between the two, codes go through 512
// bytes of shared memory that belong to the warp. Neither side has bank conflicts, since consecutive lanes
// have consecutive words.
#pragma once

#include "kernels/sm80/elements.h"

namespace qcts::sm80 {
namespace {

constexpr int kStageBytes = 512, kBlockWarps = 8, kBlockThreads = 32 * kBlockWarps;
// Reductions over a block, and tables, use the memory after the stages.
constexpr uint32_t kAfterStages = kBlockWarps * kStageBytes, kSharedBytes = kAfterStages + 128;

// Codes of kBits bits, in the order of their elements. Two nibbles share a byte. With kHighFirst, the even
// one is the high one.
template <int kBitsOfCode, bool kHighFirst = false>
struct Codes {
  static constexpr int kBits = kBitsOfCode, kPerWord = 32 / kBits;
  static constexpr int kUnit = 8 / kBits;                // elements in a byte
  static constexpr int kPer16 = 128 / kBits;             // elements in 16 bytes
  static constexpr int kTile = kStageBytes * 8 / kBits;  // elements in a tile
  static QCTS_DEVICE int shift(int i) { return kBits * ((kHighFirst ? i ^ 1 : i) % kPerWord); }
  static QCTS_DEVICE uint32_t get(const uint32_t* words, int i) {
    return words[i / kPerWord] >> shift(i) & ((1u << kBits) - 1);
  }
  static QCTS_DEVICE void put(uint32_t* words, int i, uint32_t code) {
    words[i / kPerWord] |= code << shift(i);
  }
};

// The codes of a chunk of floats in a stage: 2, 4 or 8 bytes.
template <class T, class Codes>
struct Chunk {
  static constexpr int kBytes = T::kChunk * Codes::kBits / 8;
  static constexpr int kSegments = Codes::kTile / (32 * T::kChunk);
  // Returns the first element, within the tile, of this lane's chunk in a segment.
  static QCTS_DEVICE int first(int segment) {
    return (segment * 32 + static_cast<int>(lane_index())) * T::kChunk;
  }

  static QCTS_DEVICE void load(const uint8_t* stage, int segment, uint32_t (&words)[2]) {
    const uint8_t* at = stage + (segment * 32 + static_cast<int>(lane_index())) * kBytes;
    if constexpr (kBytes == 2) {
      words[0] = load_shared<uint16_t>(at);
    } else if constexpr (kBytes == 4) {
      words[0] = load_shared<uint32_t>(at);
    } else {
      const auto both = load_shared<Words2>(at);
      words[0] = both.word[0];
      words[1] = both.word[1];
    }
  }
  static QCTS_DEVICE void store(uint8_t* stage, int segment, const uint32_t (&words)[2]) {
    uint8_t* at = stage + (segment * 32 + static_cast<int>(lane_index())) * kBytes;
    if constexpr (kBytes == 2)
      store_shared(at, static_cast<uint16_t>(words[0]));
    else if constexpr (kBytes == 4)
      store_shared(at, words[0]);
    else
      store_shared(at, Words2{{words[0], words[1]}});
  }
};

// The elements of a tile are 2^shift columns of one row or of several rows.
struct TileShape {
  uint32_t shift;
  QCTS_DEVICE int64_t row(int element) const { return element >> shift; }
  QCTS_DEVICE int64_t column(int element) const { return element & ((1 << shift) - 1); }
};

QCTS_DEVICE uint8_t* stage_of_warp() { return shared_memory() + warp_index() * kStageBytes; }

// Loads one element as a float.
template <class T>
QCTS_DEVICE float load_element(const uint8_t* row, int64_t k) {
  return T::decode_all(load_global<typename T::Bits>(row + k * T::kBytes));
}

}  // namespace
}  // namespace qcts::sm80
