// SPDX-License-Identifier: BSD-3-Clause
// The frame of `linear` for few rows of x, weight-only. Each weight is used once a row of x, so reading the
// codes limits it, and they are read once, 16 bytes a lane, straight to registers. A warp has one row of the
// weight and walks along k; the eight warps of a block have consecutive rows, so that x, and the scales of a
// group, which are adjacent for consecutive rows, are staged once a block. The rows of x beyond kRows are
// those of other blocks.
//
// Lane l needs the kCodes elements of x that face its codes. They are staged by units of 16 bytes so that the
// lanes of a warp read neighbouring units (place_of): read in the order of k they would be kCodes elements
// apart, which makes all lanes of an access meet in a few banks.
//
// w = code * scale + zero is rounded to float32 once, x * w is added by fused multiply-adds in float32, in an
// order that depends on k alone, and y is rounded once.
//
// A Weight has
//   Weight(problem)             on the host; a plain struct that is passed to the device
//   codes, kBits                row n of the codes begins at n * k * kBits / 8
//   parameters(n, group)        scale and zero of a group, as the bits of two float32
//   decode(words, pair, w)      eight weights from 8 * kBits bits and these parameters
//   has_aligned_codes(problem)  whether each row begins at a multiple of 16 bytes
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/sm80/elements.h"

namespace qcts::sm80 {
namespace {

// Of an SM. Without this number, ptxas spills registers for the sake of an occupancy that it chooses.
constexpr int kGemvBlocks = 2;
constexpr int kGemvThreads = 256, kGemvWarps = kGemvThreads / 32;
// k that are staged at a time: with four rows of 16-bit x and groups of 32 elements, 16 KiB of x and 4 KiB of
// scales.
constexpr int kStagedK = 2048;
constexpr int kUnitBytes = 16;

// x [m,k], y [m,n], n rows of weights.
struct Product {
  const uint8_t* x;
  uint8_t* y;
  const void* bias;
  int64_t ldx_bytes, ldy_bytes;
  int64_t m, n, k, group;
  uint32_t y_dtype, bias_dtype;
  bool has_aligned_x;
  bool has_narrow_groups;  // the codes of a lane may belong to several
};

template <class T, class Weight>
struct Staging {
  static constexpr int kCodes = 128 / Weight::kBits;  // of a lane
  static constexpr int kUnits = kCodes / T::kChunk;   // of 16 bytes, that face them
  static constexpr int kUnitsOfWarp = 32 * kUnits;
  static constexpr int kRowBytes = kStagedK * T::kBytes;  // of one row of x
  static_assert(kUnits >= 2 && kUnits <= 8 && kStagedK % (32 * kCodes) == 0);

  // Where unit `unit` of lane `lane` in step `step` stands. The exclusive-or lets eight units that are
  // consecutive along k, which a quarter of a warp stages at a time, fall into different banks.
  static QCTS_DEVICE int place_of(int step, int lane, int unit) {
    return (step * kUnitsOfWarp + unit * 32 + (lane ^ (unit * (8 / kUnits)))) * kUnitBytes;
  }
};

// Eight elements of x, from one or two units.
template <class T, class Weight>
QCTS_DEVICE void load_staged(const uint8_t* row, int step, int eight, float (&x)[8]) {
  QCTS_UNROLL
  for (int part = 0; part < 8 / T::kChunk; ++part) {
    const auto chunk =
        load_shared<Words4>(row + Staging<T, Weight>::place_of(step, static_cast<int>(lane_index()),
                                                               eight * (8 / T::kChunk) + part));
    QCTS_UNROLL
    for (int i = 0; i < T::kChunk; ++i) x[part * T::kChunk + i] = T::decode(element<T>(chunk, i));
  }
}

// Stages `length` elements of kRows rows of x from k on, and zeros up to whole steps of a warp and for rows
// beyond m.
template <class T, class Weight, int kRows>
QCTS_DEVICE void stage_x(const Product& p, int64_t first_m, int64_t k, int length, uint8_t* staged) {
  using Stage = Staging<T, Weight>;
  constexpr int kStep = 32 * Stage::kCodes;
  const int units = (length + kStep - 1) / kStep * Stage::kUnitsOfWarp;
  for (int at = static_cast<int>(thread_index()); at < units * kRows; at += kGemvThreads) {
    const int row = at / units, unit = at % units;
    const int64_t m = first_m + row;
    const int from = unit * T::kChunk;
    Words4 chunk = {};
    if (m < p.m && from < length) {
      const uint8_t* x = p.x + m * p.ldx_bytes + (k + from) * T::kBytes;
      if (p.has_aligned_x) {
        chunk = load_global<Words4>(x);
      } else {
        QCTS_UNROLL
        for (int i = 0; i < T::kChunk; ++i)
          if (from + i < length) set_element<T>(chunk, i, load_global<typename T::Bits>(x + i * T::kBytes));
      }
    }
    const int lane = unit / Stage::kUnits % 32;
    store_shared(staged + row * Stage::kRowBytes +
                     Stage::place_of(unit / Stage::kUnitsOfWarp, lane, unit % Stage::kUnits),
                 chunk);
  }
}

// Stages the parameters of the block's rows: group by group, row by row, as int4_tinygemm stores them.
template <class Weight>
QCTS_DEVICE void stage_parameters(const Product& p, const Weight& weight, int64_t first_n,
                                  int64_t first_group, int groups, uint8_t* staged) {
  for (int at = static_cast<int>(thread_index()); at < groups * kGemvWarps; at += kGemvThreads) {
    const int64_t n = first_n + at % kGemvWarps;
    Words2 pair = {};
    if (n < p.n) pair = weight.parameters(n, first_group + at / kGemvWarps);
    store_shared(staged + at * static_cast<int>(sizeof(Words2)), pair);
  }
}

// The last bytes of a row are followed by zeros.
template <bool kAligned>
QCTS_DEVICE Words4 load_codes(const uint8_t* at, int64_t bytes_left) {
  if constexpr (kAligned) return load_stream(at);
  Words4 codes = {};
  QCTS_UNROLL
  for (int i = 0; i < 16; ++i)
    if (i < bytes_left)
      codes.word[i / 4] |= static_cast<uint32_t>(load_global<uint8_t>(at + i)) << (8 * (i % 4));
  return codes;
}

template <class T, class Weight, int kRows, bool kAligned>
__global__ void __launch_bounds__(kGemvThreads, kGemvBlocks) gemv(const Weight weight, const Product p) {
  using Stage = Staging<T, Weight>;
  uint8_t* staged_x = shared_memory();
  uint8_t* staged_parameters = staged_x + kRows * Stage::kRowBytes;
  const int64_t first_n = static_cast<int64_t>(block_x()) * kGemvWarps,
                first_m = static_cast<int64_t>(block_y()) * kRows;
  const int warp = static_cast<int>(warp_index()), lane = static_cast<int>(lane_index());
  const int64_t n = first_n + warp;
  float sums[kRows] = {};
  for (int64_t k = 0; k < p.k; k += kStagedK) {
    const int length = static_cast<int>(p.k - k < kStagedK ? p.k - k : kStagedK);
    const int64_t first_group = k / p.group;
    stage_x<T, Weight, kRows>(p, first_m, k, length, staged_x);
    stage_parameters(p, weight, first_n, first_group,
                     static_cast<int>((k + length - 1) / p.group - first_group) + 1, staged_parameters);
    sync_block();
    for (int at = lane * Stage::kCodes; n < p.n && at < length; at += 32 * Stage::kCodes) {
      const Words4 codes = load_codes<kAligned>(weight.codes + (n * p.k + k + at) * Weight::kBits / 8,
                                                static_cast<int64_t>(length - at) * Weight::kBits / 8);
      Words2 pair = {};
      QCTS_UNROLL
      for (int eight = 0; eight < Stage::kCodes / 8; ++eight) {
        if (!kAligned && at + eight * 8 >= length) continue;
        if (eight == 0 || p.has_narrow_groups) {
          const auto group = static_cast<int>((k + at + eight * 8) / p.group - first_group);
          pair = load_shared<Words2>(staged_parameters +
                                     (group * kGemvWarps + warp) * static_cast<int>(sizeof(Words2)));
        }
        float w[8];
        Weight::decode(&codes.word[eight * Weight::kBits / 4], pair, w);
        if constexpr (!kAligned) {
          QCTS_UNROLL
          for (int i = 0; i < 8; ++i)
            if (at + eight * 8 + i >= length) w[i] = 0;
        }
        QCTS_UNROLL
        for (int row = 0; row < kRows; ++row) {
          float x[8];
          load_staged<T, Weight>(staged_x + row * Stage::kRowBytes, at / (32 * Stage::kCodes), eight, x);
          QCTS_UNROLL
          for (int i = 0; i < 8; ++i) sums[row] = fmaf(x[i], w[i], sums[row]);
        }
      }
    }
    sync_block();
  }
  if (n >= p.n) return;
  QCTS_UNROLL
  for (int row = 0; row < kRows; ++row) {
    const int64_t m = first_m + row;
    if (m >= p.m) continue;
    QCTS_UNROLL
    for (uint32_t step = 16; step > 0; step /= 2) sums[row] += shuffle_xor(sums[row], step);
    if (lane != 0) continue;
    if (p.bias != nullptr) sums[row] += load_float(p.bias_dtype, p.bias, n);
    store_float(p.y_dtype, p.y + m * p.ldy_bytes, n, sums[row]);
  }
}

// Elements that share parameters.
[[maybe_unused]] int64_t group_of(const qcts_problem& p) { return p.group == 0 ? p.k : p.group; }

template <class T, class Weight, int kRows>
qcts_status gemv_of_rows(const qcts_problem& p, const Weight& weight) {
  using Stage = Staging<T, Weight>;
  const Product product = {static_cast<const uint8_t*>(p.x),
                           static_cast<uint8_t*>(p.y),
                           p.bias,
                           p.ldx_bytes,
                           p.ldy_bytes,
                           p.m,
                           p.n,
                           p.k,
                           group_of(p),
                           p.y_dtype,
                           p.bias_dtype,
                           p.k % T::kChunk == 0 && has_aligned_rows(p.x, p.m, p.ldx_bytes),
                           group_of(p) % Stage::kCodes != 0 && group_of(p) != p.k};
  const int64_t groups = kStagedK / product.group + 2;  // both ends of what is staged may cut one
  const Launch at = {
      .blocks_x = blocks_for(p.n, kGemvWarps),
      .blocks_y = blocks_for(p.m, kRows),
      .threads = kGemvThreads,
      .shared_bytes = static_cast<uint32_t>(kRows * Stage::kRowBytes + groups * kGemvWarps * sizeof(Words2))};
  return Weight::has_aligned_codes(p) ? launch(p, at, gemv<T, Weight, kRows, true>, weight, product)
                                      : launch(p, at, gemv<T, Weight, kRows, false>, weight, product);
}

// Eight codes that are decoded together share parameters.
template <const qcts_kernel& kKernel>
qcts_status supports_gemv(const qcts_problem* problem, char* why, size_t why_size) {
  const qcts_status status = check_problem(kKernel, problem, why, why_size);
  if (status != QCTS_OK) return status;
  if (problem->group % 8 != 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: a multiple of 8 is possible",
                  static_cast<long long>(problem->group));
  return QCTS_OK;
}

template <class Weight>
qcts_status gemv_linear(const qcts_problem& p) {
  return with_type(p.x_dtype, [&](auto type) {
    using T = decltype(type);
    const Weight weight(p);
    constexpr int kManyRows = T::kBytes == 4 ? 2 : 4;  // four of float32 do not fit the registers
    return p.m == 1 ? gemv_of_rows<T, Weight, 1>(p, weight) : gemv_of_rows<T, Weight, kManyRows>(p, weight);
  });
}

}  // namespace
}  // namespace qcts::sm80
