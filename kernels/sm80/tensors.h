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
QCTS_DEVICE Magnitude largest_of_block(const Runs& x) {
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
  return range;
}
template <class T, bool kChunks>
__global__ void __launch_bounds__(kBlockThreads) largest_of_all(const Runs x, uint32_t* largest) {
  const Magnitude range = largest_of_block<T, kChunks>(x);
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

// For tensors that one block reads in the time of a few launches, it does all of that.
constexpr int64_t kFewElements = 1 << 15;
template <class T, bool kChunks, class Finish>
__global__ void __launch_bounds__(kBlockThreads)
    scale_of_few(const Runs x, uint32_t* at, const Finish finish) {
  const Magnitude range = largest_of_block<T, kChunks>(x);
  if (thread_index() != 0) return;
  store_global(at, range.word[0]);
  finish.template finish<T>(at);
}

template <class Finish>
qcts_status scale_of_all(const qcts_problem& p, const Runs& x, void* plane, const Finish& finish) {
  auto* at = static_cast<uint32_t*>(plane);
  constexpr int64_t kBlocks = 1024;  // enough for every GPU; each adds its own magnitude
  return with_type(type_of_x(p), [&](auto type) {
    using T = decltype(type);
    const bool chunks = x.k % T::kChunk == 0 && has_aligned_rows(x.x, x.rows, x.stride_bytes);
    const int64_t parts = x.rows * blocks_for(x.k, kPart * kBlockThreads * (chunks ? T::kChunk : 1));
    Launch whole = {.blocks_x = parts < kBlocks ? parts : kBlocks,
                    .threads = kBlockThreads,
                    .shared_bytes = kSharedBytes};
    if (x.rows * x.k <= kFewElements) {
      whole.blocks_x = 1;
      return chunks ? launch(p, whole, scale_of_few<T, true, Finish>, x, at, finish)
                    : launch(p, whole, scale_of_few<T, false, Finish>, x, at, finish);
    }
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

// Returns the sum of all scalers in order, of which thread 0 adds one after the other. Meanwhile the other
// threads fetch the next ones.
QCTS_DEVICE double sum_in_order(const Nf4Scalers& p, uint8_t* shared) {
  const auto fetch = [&](int64_t first, uint32_t stage) {
    if (const int64_t i = first + thread_index(); i < p.count)
      store_shared(shared + 4 * (stage * kBlockThreads + thread_index()),
                   load_global<uint32_t>(p.scalers + 4 * i));
  };
  double sum = 0;
  fetch(0, 0);
  for (int64_t first = 0; first < p.count; first += kBlockThreads) {
    const auto stage = static_cast<uint32_t>(first / kBlockThreads % 2);
    sync_block();
    fetch(first + kBlockThreads, 1 - stage);
    for (uint32_t i = 0; thread_index() == 0 && i < kBlockThreads && first + i < p.count; ++i)
      sum += float_of(load_shared<uint32_t>(shared + 4 * (stage * kBlockThreads + i)));
  }
  return sum;
}

// One block computes the mean, as if by a sum in order in double. The threads share the work if all sums are
// exact, so that their order does not matter, or if the float32 nearest to the sum is the same within the
// error of both orders. Each addition has a relative error of 2^-53, and scalers are not negative. Also
// stores the table.
template <class T>
__global__ void __launch_bounds__(kBlockThreads) nf4_mean(const Nf4Scalers p) {
  const uint32_t thread = thread_index();
  uint8_t* shared = shared_memory();
  QCTS_UNROLL
  for (uint32_t i = 0; i < 16; ++i)
    if (thread == i) store_global(p.table + i * T::kBytes, T::encode_all(p.values[i]));
  float min = 1e38f, max = 0;
  double sum = 0;
  for (int64_t i = thread; i < p.count; i += kBlockThreads) {
    const float scaler = load_float(QCTS_F32, p.scalers, i);
    if (scaler > 0 && scaler < min) min = scaler;
    if (scaler > max) max = scaler;
    sum += scaler;
  }
  store_shared(shared + 8 * thread, __builtin_bit_cast(Words2, sum));
  store_shared(shared + 8 * kBlockThreads + 8 * thread, Words2{{bits_of(min), bits_of(max)}});
  sync_block();
  // All threads merge, since all must know whether a sum in order follows.
  sum = 0;
  for (uint32_t i = 0; i < kBlockThreads; ++i) {
    const auto ends = load_shared<Words2>(shared + 8 * kBlockThreads + 8 * i);
    min = fminf(min, float_of(ends.word[0]));
    max = fmaxf(max, float_of(ends.word[1]));
    sum += shared_double(shared, i);
  }
  const auto count = static_cast<double>(p.count);
  const double error = sum * (2 * count + 1024) * 0x1p-53;
  const bool is_exact = count * max <= 0x1p29 * min;
  if (!is_exact && !(static_cast<float>(sum - error) == static_cast<float>(sum + error))) {
    sync_block();
    sum = sum_in_order(p, shared);
  }
  if (thread == 0) store_global(p.mean, T::encode_all(static_cast<float>(sum) / static_cast<float>(p.count)));
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
