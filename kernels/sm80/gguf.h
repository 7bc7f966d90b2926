// SPDX-License-Identifier: BSD-3-Clause
// gguf_proto: its codes stay floats of the weight's dtype (kernels/quantize/gguf_proto_scalar.cc). A warp
// handles a super block of 256 elements, in segments of 32 chunks. kLanes lanes share a block of 32. Every
// step rounds to T.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/families/entry.h"
#include "kernels/sm80/small_floats.h"
#include "kernels/sm80/stage.h"

namespace qcts::sm80 {
namespace {

struct GgufPlanes {
  uint8_t *scale_scales, *min_scales, *scales, *mins, *codes;
  uint8_t* weight;
  int64_t stride_bytes, k, supers;
};

template <class T>
struct Gguf {
  static constexpr int kSegments = 256 / (32 * T::kChunk), kLanes = 32 / T::kChunk, kBlocks = 8;

  // Loads or stores a chunk of T, in one access or one element at a time.
  template <bool kChunks>
  static QCTS_DEVICE Words4 load(const uint8_t* at) {
    if constexpr (kChunks) return load_global<Words4>(at);
    Words4 chunk = {};
    QCTS_UNROLL
    for (int i = 0; i < T::kChunk; ++i)
      set_element<T>(chunk, i, load_global<typename T::Bits>(at + i * T::kBytes));
    return chunk;
  }
  template <bool kChunks>
  static QCTS_DEVICE void store(uint8_t* at, const Words4& chunk) {
    if constexpr (kChunks) {
      store_global(at, chunk);
    } else {
      QCTS_UNROLL
      for (int i = 0; i < T::kChunk; ++i) store_global(at + i * T::kBytes, element<T>(chunk, i));
    }
  }
  static QCTS_DEVICE float load_at(const uint8_t* plane, int64_t index) {
    return load_element<T>(plane, index);
  }
  static QCTS_DEVICE void store_at(uint8_t* plane, int64_t index, float value) {
    store_global(plane + index * T::kBytes, T::encode_all(value));
  }

  // Divides the values of a warp's blocks by a unit, the largest magnitude / 63, and clamps them to 0 .. 63.
  // Returns the unit.
  static QCTS_DEVICE float quantize_level(float (&values)[kSegments]) {
    uint32_t largest = 0;
    QCTS_UNROLL
    for (int segment = 0; segment < kSegments; ++segment) {
      const uint32_t magnitude = bits_of(values[segment]) & kMagnitudeBits;
      largest = magnitude > largest ? magnitude : largest;
    }
    QCTS_UNROLL
    for (uint32_t step = kLanes; step < 32; step *= 2) {
      const uint32_t other = shuffle_xor(largest, step);
      largest = other > largest ? other : largest;
    }
    const float unit = round_to<T>(float_of(largest) / 63.0f);
    QCTS_UNROLL
    for (int segment = 0; segment < kSegments; ++segment) {
      const float steps = round_to<T>(values[segment] / unit);
      values[segment] = steps < 0 ? 0 : steps > 63 ? 63 : steps;
    }
    return unit;
  }
};

// Returns the lower of two numbers if `sign` is 1, or the higher if it is -1. Returns the first if they are
// equal, as zeros of both signs are. Returns NaN if one is NaN.
QCTS_DEVICE float beyond(float first, float second, float sign) {
  if (is_nan(first)) return first;
  return is_nan(second) || second * sign < first * sign ? second : first;
}

template <class T, bool kChunks>
__global__ void __launch_bounds__(kBlockThreads) quantize_gguf(const GgufPlanes p) {
  using Parts = Gguf<T>;
  constexpr int kSegments = Parts::kSegments, kLanes = Parts::kLanes;
  const int64_t super = static_cast<int64_t>(block_x()) * kBlockWarps + warp_index();
  if (super >= p.supers) return;
  const int64_t first = super * 256;
  const auto lane = static_cast<int>(lane_index());
  const uint8_t* row = p.weight + first / p.k * p.stride_bytes + first % p.k * T::kBytes;
  Words4 chunks[kSegments];
  float scales[kSegments], mins[kSegments];
  QCTS_UNROLL
  for (int segment = 0; segment < kSegments; ++segment) {
    chunks[segment] = Parts::template load<kChunks>(row + (segment * 32 + lane) * 16);
    float low = T::decode(element<T>(chunks[segment], 0)), high = low;
    QCTS_UNROLL
    for (int i = 1; i < T::kChunk; ++i) {
      const float w = T::decode(element<T>(chunks[segment], i));
      low = beyond(low, w, 1);
      high = beyond(high, w, -1);
    }
    QCTS_UNROLL
    for (uint32_t step = 1; step < kLanes; step *= 2) {
      const bool is_second = (static_cast<uint32_t>(lane) & step) != 0;
      const float other_low = shuffle_xor(low, step), other_high = shuffle_xor(high, step);
      low = is_second ? beyond(other_low, low, 1) : beyond(low, other_low, 1);
      high = is_second ? beyond(other_high, high, -1) : beyond(high, other_high, -1);
    }
    scales[segment] = round_to<T>(round_to<T>(high - low) / 15.0f);
    mins[segment] = low;
  }
  const float scale_unit = Parts::quantize_level(scales), min_unit = Parts::quantize_level(mins);
  if (lane == 0) {
    Parts::store_at(p.scale_scales, super, scale_unit);
    Parts::store_at(p.min_scales, super, min_unit);
  }
  QCTS_UNROLL
  for (int segment = 0; segment < kSegments; ++segment) {
    const int64_t block = super * Parts::kBlocks + (segment * 32 + lane) / kLanes;
    if (lane % kLanes == 0) {
      Parts::store_at(p.scales, block, scales[segment]);
      Parts::store_at(p.mins, block, mins[segment]);
    }
    const float scale = round_to<T>(scale_unit * scales[segment]),
                min = round_to<T>(min_unit * mins[segment]);
    Words4 codes = {};
    QCTS_UNROLL
    for (int i = 0; i < T::kChunk; ++i) {
      const float above = round_to<T>(T::decode(element<T>(chunks[segment], i)) - min);
      set_element<T>(codes, i, T::encode_all(above / scale));
    }
    Parts::template store<kChunks>(p.codes + first * T::kBytes + (segment * 32 + lane) * 16, codes);
  }
}

template <class T, bool kChunks>
__global__ void __launch_bounds__(kBlockThreads) dequantize_gguf(const GgufPlanes p) {
  using Parts = Gguf<T>;
  const int64_t super = static_cast<int64_t>(block_x()) * kBlockWarps + warp_index();
  if (super >= p.supers) return;
  const int64_t first = super * 256;
  const auto lane = static_cast<int>(lane_index());
  uint8_t* row = p.weight + first / p.k * p.stride_bytes + first % p.k * T::kBytes;
  const float scale_unit = Parts::load_at(p.scale_scales, super),
              min_unit = Parts::load_at(p.min_scales, super);
  QCTS_UNROLL
  for (int segment = 0; segment < Parts::kSegments; ++segment) {
    const int64_t block = super * Parts::kBlocks + (segment * 32 + lane) / Parts::kLanes;
    const float scale = round_to<T>(scale_unit * Parts::load_at(p.scales, block));
    const float min = round_to<T>(min_unit * Parts::load_at(p.mins, block));
    const Words4 codes =
        Parts::template load<kChunks>(p.codes + first * T::kBytes + (segment * 32 + lane) * 16);
    Words4 weights = {};
    QCTS_UNROLL
    for (int i = 0; i < T::kChunk; ++i)
      set_element<T>(weights, i, T::encode(round_to<T>(T::decode(element<T>(codes, i)) * scale) + min));
    Parts::template store<kChunks>(row + (segment * 32 + lane) * 16, weights);
  }
}

// Runs both ops. The weight is x or y, and the other planes are out_planes or planes.
template <bool kQuantizes>
qcts_status run_gguf(const qcts_problem& p) {
  return with_type(p.w_dtype, [&](auto type) {
    using T = decltype(type);
    const auto plane = [&p](const char* name) {
      return static_cast<uint8_t*>(kQuantizes ? out_plane(p, name) : const_cast<void*>(in_plane(p, name)));
    };
    void* weight = kQuantizes ? const_cast<void*>(p.x) : p.y;
    const int64_t stride = kQuantizes ? p.ldx_bytes : p.ldy_bytes;
    const GgufPlanes planes = {plane("super_block_scale_scale"),
                               plane("super_block_min_scale"),
                               plane("quantized_block_scale"),
                               plane("quantized_block_min"),
                               plane("int_data"),
                               static_cast<uint8_t*>(weight),
                               stride,
                               p.k,
                               p.n * p.k / 256};
    const Launch at = {.blocks_x = blocks_for(planes.supers, kBlockWarps), .threads = kBlockThreads};
    const bool chunks = is_multiple_of_16(planes.codes) && has_aligned_rows(weight, p.n, stride);
    if constexpr (kQuantizes)
      return chunks ? launch(p, at, quantize_gguf<T, true>, planes)
                    : launch(p, at, quantize_gguf<T, false>, planes);
    else
      return chunks ? launch(p, at, dequantize_gguf<T, true>, planes)
                    : launch(p, at, dequantize_gguf<T, false>, planes);
  });
}

}  // namespace
}  // namespace qcts::sm80
