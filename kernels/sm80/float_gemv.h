// SPDX-License-Identifier: BSD-3-Clause
// `linear` with a float weight under float8 rows of x (pytorch/ao#2338). A first pass makes codes and scales
// of x, as quantize_activation does. This frame sums code * weight by fused multiply-adds in float32. The
// power of two in a row's scale acts on its codes, which is exact, so a sum overflows only if sums of x *
// weight do. The rest of the scale, from 1 to 2, acts on the finished sum. So only sums and y are rounded.
//
// A block has 32 rows of the weight, four for each of its eight warps, and up to eight rows of x. A warp
// walks along k and reads the weight straight to registers, 16 bytes per lane and row. The codes of x are
// decoded once per block, to shared memory, and each read of x there serves four rows of the weight.
//
// Up to eight rows of x, or four if the weight has 16 bits, the kernel is bound by reading the weight. That
// is at most two multiply-adds per byte, and an A100 has time for six. Below about 3,500 rows of the weight,
// n / 32 blocks do not fill its 108 multiprocessors. Blocks that share a weight are neighbours in the grid,
// so more rows of x read it again from L2, and the kernel is bound by that and by the multiply-adds. Tensor
// cores would be faster then, but none holds a float32 weight.
//
// A sum is added in an order that depends only on k, so a row of x among many is bitwise equal to the same
// row by itself.
#pragma once

#include "kernels/sm80/fp8_x.h"

namespace qcts::sm80 {
namespace {

constexpr int kFloatThreads = 256;
constexpr int kWarpWeights = 4, kBlockWeights = kFloatThreads / 32 * kWarpWeights;  // rows of the weight

// The number of rows of x that share a read of the weight. More of them need registers that spill.
template <class W>
constexpr int kSharingRows = 2 * W::kBytes;

// A row's scale is power * rest. It is never subnormal, and if it is NaN, so are the codes.
struct SplitScale {
  float power, rest;
};
QCTS_DEVICE SplitScale split_scale(const uint8_t* scales, int64_t m) {
  const auto bits = load_global<uint32_t>(scales + 4 * m);
  return {float_of(bits & kInfinityBits), float_of((bits & 0x007FFFFF) | 0x3F800000)};
}

// Codes of x in shared memory, as floats. A unit is the four floats of 16 bytes, and a lane needs the kUnits
// units of its chunk of the weight.
template <class W, int kRows>
struct FloatStage {
  static constexpr int kUnits = W::kChunk / 4, kStepK = 32 * W::kChunk, kStepUnits = 32 * kUnits;
  static constexpr int kStagedK = kRows <= 4 ? 2048 : 1024;  // k that are staged at a time
  static constexpr int kRowBytes = 4 * kStagedK;
  static_assert(kStagedK % kStepK == 0 && kUnits <= 2);

  // Returns the place of unit `unit` of lane `lane` in step `step`. The first units of all lanes are
  // together, and so are the second ones. The exclusive-or puts the two units of a lane into different banks.
  static QCTS_DEVICE int place_of(int step, int lane, int unit) {
    return 16 * (step * kStepUnits + 32 * unit + (lane ^ (4 * unit)));
  }
  // Stages `length` codes from k on, of each of `rows` rows. Zeros fill up whole steps of a warp.
  static QCTS_DEVICE void fill(const Product& p, const uint8_t* x_scales, int64_t first_m, int rows,
                               int64_t k, int length) {
    const int units = (length + kStepK - 1) / kStepK * kStepUnits;
    for (int row = 0; row < rows; ++row) {
      const float power = split_scale(x_scales, first_m + row).power;
      for (int unit = static_cast<int>(thread_index()); unit < units; unit += kFloatThreads) {
        const uint32_t codes =
            four_codes(p.x + (first_m + row) * p.k + k + 4 * unit, length - 4 * unit, p.has_aligned_x);
        uint32_t pairs[2];
        FloatDecoder<4, 3>::operands<BF16>(codes, {}, pairs);
        Words4 floats;
        QCTS_UNROLL
        for (int i = 0; i < 4; ++i)
          floats.word[i] =
              bits_of(float_of(i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xFFFF0000) * power);
        store_shared(shared_memory() + row * kRowBytes +
                         place_of(unit / kStepUnits, unit / kUnits % 32, unit % kUnits),
                     floats);
      }
    }
  }

 private:
  static QCTS_DEVICE uint32_t four_codes(const uint8_t* from, int left, bool is_aligned) {
    if (is_aligned && left >= 4) return load_global<uint32_t>(from);
    uint32_t codes = 0;
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i)
      if (i < left) codes |= static_cast<uint32_t>(load_global<uint8_t>(from + i)) << (8 * i);
    return codes;
  }
};

// Adds the products of a chunk of each of four rows of the weight with the staged rows of x.
template <class W, int kRows>
QCTS_DEVICE void add_chunk(const Words4 (&w)[kWarpWeights], int step, int rows,
                           float (&sums)[kRows * kWarpWeights]) {
  using Stage = FloatStage<W, kRows>;
  QCTS_UNROLL
  for (int unit = 0; unit < Stage::kUnits; ++unit) {
    const uint8_t* from = shared_memory() + Stage::place_of(step, static_cast<int>(lane_index()), unit);
    QCTS_UNROLL
    for (int row = 0; row < kRows; ++row) {
      if (row >= rows) continue;
      const auto x = load_shared<Words4>(from + row * Stage::kRowBytes);
      QCTS_UNROLL
      for (int i = 0; i < 4 * kWarpWeights; ++i) {
        const int at = i / kWarpWeights, side = i % kWarpWeights;
        float& sum = sums[row * kWarpWeights + side];
        sum = fmaf(float_of(x.word[at]), W::decode(element<W>(w[side], 4 * unit + at)), sum);
      }
    }
  }
}

// Adds each sum over the lanes of a warp. Lane l gets sum l / (32 / kCount). As long as a lane has several
// sums, it gives away half of them in each step. All sums are added in the same order.
template <int kCount>
QCTS_DEVICE float sum_over_lanes(float (&sums)[kCount]) {
  int left = kCount;
  QCTS_UNROLL
  for (int with = 16; with > 0; with /= 2) {
    const bool upper = (static_cast<int>(lane_index()) & with) != 0;
    const auto lanes = static_cast<uint32_t>(with);
    if (left == 1) {
      sums[0] += shuffle_xor(sums[0], lanes);
      continue;
    }
    left /= 2;
    QCTS_UNROLL
    for (int i = 0; i < kCount / 2; ++i)
      if (i < left)
        sums[i] = (upper ? sums[left + i] : sums[i]) + shuffle_xor(upper ? sums[i] : sums[left + i], lanes);
  }
  return sums[0];
}

// p.x has the codes of x.
template <class W, int kRows>
__global__ void __launch_bounds__(kFloatThreads, 2)
    float_gemv(const Product p, const uint8_t* weight, const uint8_t* x_scales) {
  using Stage = FloatStage<W, kRows>;
  constexpr int kSums = kRows * kWarpWeights, kLanesOfSum = 32 / kSums;
  const int64_t bands = (p.m + kRows - 1) / kRows, band = quotient(block_x(), bands);
  const int64_t first_m = (block_x() - band * bands) * kRows;
  const int64_t first_n = band * kBlockWeights + warp_index() * kWarpWeights, left_n = p.n - first_n;
  const int rows = p.m - first_m < kRows ? static_cast<int>(p.m - first_m) : kRows;
  const int sides = left_n <= 0 ? 0 : left_n < kWarpWeights ? static_cast<int>(left_n) : kWarpWeights;
  const int lane = static_cast<int>(lane_index());
  float sums[kSums] = {};
  for (int64_t k = 0; k < p.k; k += Stage::kStagedK) {
    const int length = static_cast<int>(p.k - k < Stage::kStagedK ? p.k - k : Stage::kStagedK);
    Stage::fill(p, x_scales, first_m, rows, k, length);
    sync_block();
    for (int at = lane * W::kChunk; sides > 0 && at < length; at += Stage::kStepK) {
      Words4 w[kWarpWeights] = {};
      QCTS_UNROLL
      for (int side = 0; side < kWarpWeights; ++side) {
        if (side >= sides) continue;
        const uint8_t* from = weight + ((first_n + side) * p.k + k + at) * W::kBytes;
        w[side] = p.has_aligned_codes && at + W::kChunk <= length
                      ? load_stream(from)
                      : load_elements<W::kBytes>(from, static_cast<int64_t>(length - at) * W::kBytes);
      }
      add_chunk<W, kRows>(w, at / Stage::kStepK, rows, sums);
    }
    sync_block();
  }
  if (sides == 0) return;
  const float sum = sum_over_lanes(sums);
  const int row = lane / kLanesOfSum / kWarpWeights, side = lane / kLanesOfSum % kWarpWeights;
  if (lane % kLanesOfSum != 0 || row >= rows || side >= sides) return;
  const int64_t m = first_m + row, n = first_n + side;
  store_float(p.y_dtype, p.y + m * p.ldy_bytes, n, fmaf(split_scale(x_scales, m).rest, sum, bias_of(p, n)));
}

// On the host.

template <class W, int kRows>
qcts_status launch_float_gemv(const qcts_problem& p, const CodedX& x) {
  const uint8_t* weight = given_bytes(p, "original_weight");
  Product product = product_of(p, weight, 8 * W::kBytes);
  product.x = x.codes;
  product.ldx_bytes = p.k;
  product.has_aligned_x = has_aligned_rows(x.codes, p.m, p.k);
  return launch(p,
                {.blocks_x = blocks_for(p.n, kBlockWeights) * blocks_for(p.m, kRows),
                 .threads = kFloatThreads,
                 .shared_bytes = kRows * FloatStage<W, kRows>::kRowBytes},
                float_gemv<W, kRows>, product, weight, static_cast<const uint8_t*>(x.scales));
}

[[maybe_unused]] qcts_status run_float_weight(const qcts_problem& p) {
  const CodedX x = coded_x(p);
  if (code_x(p, x) != QCTS_OK) return QCTS_FAILED;
  return with_type(p.w_dtype, [&](auto type) {
    using W = decltype(type);
    return p.m == 1 ? launch_float_gemv<W, 1>(p, x) : launch_float_gemv<W, kSharingRows<W>>(p, x);
  });
}

template <const qcts_kernel& kKernel>
qcts_status supports_float_weight(const qcts_problem* p, char* why, size_t why_size) {
  if (supports_policy<kKernel>(p, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  return check_dimensions(*p, why, why_size);
}

template <const qcts_kernel& kKernel>
constexpr qcts_kernel float_weight_row(const char* scheme) {
  return linear_entry(scheme, "sm80",
                      "x coded by a first pass, a warp per four rows of the weight, codes by fma in float32; "
                      "bound by reading the weight up to m = 8 (float32) or 4, else by L2 and fma",
                      QCTS_F32,
                      {.supports = supports_float_weight<kKernel>,
                       .run = run_fp8_policy<kKernel, run_float_weight>,
                       .workspace_bytes = fp8_workspace_bytes,
                       .failure = last_failure});
}

}  // namespace
}  // namespace qcts::sm80
