// SPDX-License-Identifier: BSD-3-Clause
// The frame of quantize for byte codes with one scale a row. A block has one row: it reads x for the largest
// magnitude and again for the codes. The second time a row of up to some ten thousand elements comes from L1
// or L2, so x is moved once from memory, 16 bytes a lane (sm80/tiles.h), and bytes limit the kernel.
//
// A Family has
//   Family(problem)               on the host; a plain struct that is passed to the device
//   codes                         where the n * k bytes go
//   Scale, scale<T>(n, largest)   from the largest magnitude of row n, NaN if the row has one
//   code(scale, x)                the code of an element
//   store(n, scale)               stores what the planes hold of it; called by one thread
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/sm80/tiles.h"

namespace qcts::sm80 {
namespace {

constexpr int kQuantizeThreads = 256, kQuantizeWarps = kQuantizeThreads / 32;
constexpr uint32_t kMagnitude = 0x7FFFFFFF;

// The largest value of a block's threads, in all of them. Warps leave theirs in shared memory.
QCTS_DEVICE uint32_t block_max(uint32_t value) {
  QCTS_UNROLL
  for (uint32_t step = 16; step > 0; step /= 2) {
    const uint32_t other = shuffle_xor(value, step);
    value = other > value ? other : value;
  }
  auto* of_warps = reinterpret_cast<uint32_t*>(shared_memory());
  if (lane_index() == 0) store_shared(of_warps + warp_index(), value);
  sync_block();
  QCTS_UNROLL
  for (int warp = 0; warp < kQuantizeWarps; ++warp) {
    const auto other = load_shared<uint32_t>(of_warps + warp);
    value = other > value ? other : value;
  }
  return value;
}

// x [n,k], rows of stride_bytes.
struct Source {
  const uint8_t* first;
  int64_t stride_bytes, k;
};

// As integers, magnitudes have the order of the floats, and NaN is above infinity.
QCTS_DEVICE uint32_t larger_magnitude(uint32_t largest, float x) {
  const uint32_t magnitude = bits_of(x) & kMagnitude;
  return magnitude > largest ? magnitude : largest;
}

template <class T, class Family>
__global__ void __launch_bounds__(kQuantizeThreads) quantize_tiles(const Family family, const Source x) {
  using Tiles = Tile<T>;
  const int64_t n = block_x();
  const uint8_t* row = x.first + n * x.stride_bytes;
  uint32_t largest = 0;
  for (int64_t k = static_cast<int64_t>(thread_index()) * T::kChunk; k < x.k;
       k += kQuantizeThreads * T::kChunk) {
    const auto chunk = load_global<Words4>(row + k * T::kBytes);
    QCTS_UNROLL
    for (int i = 0; i < T::kChunk; ++i) largest = larger_magnitude(largest, T::decode(element<T>(chunk, i)));
  }
  const auto scale = family.template scale<T>(n, float_of(block_max(largest)));
  if (thread_index() == 0) family.store(n, scale);
  for (int64_t k = static_cast<int64_t>(warp_index()) * kTile; k < x.k; k += kQuantizeWarps * kTile) {
    uint32_t words[4] = {};
    QCTS_UNROLL
    for (int segment = 0; segment < Tiles::kSegments; ++segment) {
      const int64_t first = k + Tiles::first_float(segment);
      if (first >= x.k) continue;
      const auto chunk = load_global<Words4>(row + first * T::kBytes);
      QCTS_UNROLL
      for (int i = 0; i < T::kChunk; ++i)
        words[segment * Tiles::kCodeWords + i / 4] |=
            static_cast<uint32_t>(static_cast<uint8_t>(family.code(scale, T::decode(element<T>(chunk, i)))))
            << (8 * (i % 4));
    }
    Tiles::exchange(words);
    if (const int64_t first = k + Tiles::first_code(); first < x.k)
      store_global(family.codes + n * x.k + first, Words4{{words[0], words[1], words[2], words[3]}});
  }
}

template <class T, class Family>
__global__ void __launch_bounds__(kQuantizeThreads) quantize_elements(const Family family, const Source x) {
  const int64_t n = block_x();
  const uint8_t* row = x.first + n * x.stride_bytes;
  const auto value = [row](int64_t k) {
    return T::decode(load_global<typename T::Bits>(row + k * T::kBytes));
  };
  uint32_t largest = 0;
  for (int64_t k = thread_index(); k < x.k; k += kQuantizeThreads)
    largest = larger_magnitude(largest, value(k));
  const auto scale = family.template scale<T>(n, float_of(block_max(largest)));
  if (thread_index() == 0) family.store(n, scale);
  for (int64_t k = thread_index(); k < x.k; k += kQuantizeThreads)
    store_global(family.codes + n * x.k + k, static_cast<uint8_t>(family.code(scale, value(k))));
}

template <class Family>
qcts_status quantize(const qcts_problem& p) {
  return with_type(p.w_dtype, [&](auto type) {
    using T = decltype(type);
    const Family family(p);
    const Source x = {static_cast<const uint8_t*>(p.x), p.ldx_bytes, p.k};
    const Launch at = {
        .blocks_x = p.n, .threads = kQuantizeThreads, .shared_bytes = kQuantizeWarps * sizeof(uint32_t)};
    if (p.k % 16 == 0 && is_multiple_of_16(family.codes) && has_aligned_rows(p.x, p.n, p.ldx_bytes))
      return launch(p, at, quantize_tiles<T, Family>, family, x);
    return launch(p, at, quantize_elements<T, Family>, family, x);
  });
}

}  // namespace
}  // namespace qcts::sm80
