// SPDX-License-Identifier: BSD-3-Clause
// Passes of quantize over a whole tensor. One finds its largest magnitude, for families with one scale.
// Others compute the scalers of nf4.
#pragma once

#include "kernels/sm80/block_quantizers.h"

namespace qcts::sm80 {
namespace {

__global__ void __launch_bounds__(32) clear_word(uint32_t* at) {
  if (thread_index() == 0) store_global(at, uint32_t{0});
}

// `largest` begins as 0, and magnitudes have the order of integers. A block takes parts, each with kPart
// chunks per thread.
constexpr int kPart = 4;
template <class T, bool kChunks>
__global__ void __launch_bounds__(kBlockThreads) largest_of_all(const Runs x, uint32_t* largest) {
  constexpr uint32_t kStep = kChunks ? T::kChunk : 1, kElements = kPart * kBlockThreads * kStep;
  const auto parts = static_cast<uint32_t>((x.k + kElements - 1) / kElements);
  Magnitude range;
  for (int64_t part = block_x(); part < x.rows * parts; part += grid_x()) {
    const int64_t first = part % parts * kElements;
    const uint8_t* row = x.row(part / parts);
    QCTS_UNROLL
    for (uint32_t step = 0; step < kPart; ++step) {
      const int64_t k = first + (step * kBlockThreads + thread_index()) * kStep;
      if (k >= x.k) continue;
      if constexpr (kChunks) {
        float values[T::kChunk];
        decode_chunk<T>(load_global<Words4>(row + k * T::kBytes), values);
        QCTS_UNROLL
        for (int i = 0; i < T::kChunk; ++i) range.add(values[i]);
      } else {
        range.add(load_element<T>(row, k));
      }
    }
  }
  merge_lanes(range, 32);
  merge_warps(range);
  if (thread_index() == 0) atomic_max(largest, range.word[0]);
}

// Replaces the magnitude by the value that finish<T>() stores.
template <class T, class Finish>
__global__ void __launch_bounds__(32) finish_word(uint32_t* at, const Finish finish) {
  if (thread_index() == 0) finish.template finish<T>(at);
}
template <class T, class Finish>
qcts_status finish_scale(const qcts_problem& p, void* plane, const Finish& finish) {
  return launch(p, {.blocks_x = 1, .threads = 32}, finish_word<T, Finish>, static_cast<uint32_t*>(plane),
                finish);
}

template <class Finish>
qcts_status scale_of_all(const qcts_problem& p, const Runs& x, void* plane, const Finish& finish) {
  auto* at = static_cast<uint32_t*>(plane);
  constexpr int64_t kBlocks = 1024;  // enough for every GPU; each adds its own magnitude
  return with_type(type_of_x(p), [&](auto type) {
    using T = decltype(type);
    const bool chunks = x.k % T::kChunk == 0 && has_aligned_rows(x.x, x.rows, x.stride_bytes);
    const int64_t parts = x.rows * blocks_for(x.k, kPart * kBlockThreads * (chunks ? T::kChunk : 1));
    const Launch whole = {.blocks_x = parts < kBlocks ? parts : kBlocks,
                          .threads = kBlockThreads,
                          .shared_bytes = kSharedBytes};
    qcts_status status = launch(p, {.blocks_x = 1, .threads = 32}, clear_word, at);
    if (status == QCTS_OK)
      status = chunks ? launch(p, whole, largest_of_all<T, true>, x, at)
                      : launch(p, whole, largest_of_all<T, false>, x, at);
    return status == QCTS_OK ? finish_scale<T>(p, plane, finish) : status;
  });
}

QCTS_DEVICE Magnitude magnitude_at(const uint32_t* at) {
  Magnitude range;
  range.word[0] = load_written<uint32_t>(at);
  return range;
}
// Stores the scale of a family as if it were the scale of run 0.
template <class Family>
struct StoreScale {
  Family family;
  template <class T>
  QCTS_DEVICE void finish(const uint32_t* at) const {
    family.template store<T>(0, family.template scale<T>(magnitude_at(at), 0));
  }
};
// Stores per_tensor_scale of nvfp4 (per_tensor_amax_to_scale), or the given one.
struct StoreNvfp4 {
  const uint8_t* given;
  template <class T>
  QCTS_DEVICE void finish(uint32_t* at) const {
    const float scale =
        given != nullptr ? load_float(QCTS_F32, given, 0) : magnitude_at(at).largest() / (448.0f * 6.0f);
    store_global(at, bits_of(scale));
  }
};

// Scalers of nf4: kernels/families/nf4_blocks.cc.

struct Nf4Scalers {
  const uint8_t* scalers;  // float32, in the workspace
  int64_t count;
  uint8_t *mean, *factors, *codes, *table;
  float values[16];
};

QCTS_DEVICE double shared_double(const uint8_t* at, uint32_t i) {
  return __builtin_bit_cast(double, load_shared<Words2>(at + 8 * i));
}

// One block computes the mean, as if by a sum in order in double. If all sums are exact, their order does not
// matter, and the threads share the work. Otherwise one thread adds all scalers. Also stores the table.
template <class T>
__global__ void __launch_bounds__(kBlockThreads) nf4_mean(const Nf4Scalers p) {
  const uint32_t thread = thread_index();
  uint8_t* shared = shared_memory();
  const auto at = [&p](int64_t i) { return load_float(QCTS_F32, p.scalers, i); };
  QCTS_UNROLL
  for (uint32_t i = 0; i < 16; ++i)
    if (thread == i) store_global(p.table + i * T::kBytes, T::encode_all(p.values[i]));
  float min = 1e38f, max = 0;
  double sum = 0;
  for (int64_t i = thread; i < p.count; i += kBlockThreads) {
    const float scaler = at(i);
    if (scaler > 0 && scaler < min) min = scaler;
    if (scaler > max) max = scaler;
    sum += scaler;
  }
  store_shared(shared + 8 * thread, __builtin_bit_cast(Words2, sum));
  store_shared(shared + 8 * kBlockThreads + 8 * thread, Words2{{bits_of(min), bits_of(max)}});
  sync_block();
  if (thread != 0) return;
  for (uint32_t i = 1; i < kBlockThreads; ++i) {
    const auto ends = load_shared<Words2>(shared + 8 * kBlockThreads + 8 * i);
    min = fminf(min, float_of(ends.word[0]));
    max = fmaxf(max, float_of(ends.word[1]));
    sum += shared_double(shared, i);
  }
  if (!(static_cast<double>(p.count) * max <= 0x1p29 * min)) {
    sum = 0;
    for (int64_t i = 0; i < p.count; ++i) sum += at(i);
  }
  store_global(p.mean, T::encode_all(static_cast<float>(sum) / static_cast<float>(p.count)));
}

// A warp handles 256 scalers, which share a factor.
template <class T>
__global__ void __launch_bounds__(kBlockThreads) nf4_scalers(const Nf4Scalers p) {
  const int64_t block = static_cast<int64_t>(block_x()) * kBlockWarps + warp_index();
  if (block * 256 >= p.count) return;
  const float mean = T::decode(load_global<typename T::Bits>(p.mean));
  float centred[8];
  Magnitude range;
  QCTS_UNROLL
  for (int i = 0; i < 8; ++i) {
    centred[i] = round_to<T>(load_float(QCTS_F32, p.scalers, block * 256 + i * 32 + lane_index()) - mean);
    range.add(centred[i]);
  }
  merge_lanes(range, 32);
  // torch computes 256 / t as t.reciprocal() * 256.
  const float factor = round_to<T>(round_to<T>(1 / round_to<T>(2 * range.largest())) * 256);
  if (lane_index() == 0) store_global(p.factors + block * T::kBytes, T::encode_all(factor));
  QCTS_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int32_t code = clamped(nearbyintf(round_to<T>(centred[i] * factor)), -128, 127);
    store_global(p.codes + block * 256 + i * 32 + lane_index(), static_cast<uint8_t>(code));
  }
}

}  // namespace
}  // namespace qcts::sm80
