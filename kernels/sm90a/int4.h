// SPDX-License-Identifier: BSD-3-Clause
// `linear` with int4 weights and bfloat16 x (W4A16). The weight is operand a of wgmma, which may come from
// registers. So its codes go from shared memory through registers to the tensor cores, and are never stored
// again as bfloat16. For this reason y comes transposed (kernels/sm90a/stages.h).
//
// In every 16 k, lane l needs the pairs at k = 2 * (l % 4) and 2 * (l % 4) + 8, in rows l / 4 and l / 4 + 8.
// A pair is one byte. The four lanes of a row read the same 16 bytes of codes, 32 of k, in one access. This
// access hands out each byte of shared memory once: the eight rows of a quarter of the access are in
// different banks. Then a shift picks the lane's byte of each word, and four instructions make a pair of it,
// as in kernels/sm80/operands.h.
//
// Products are exact. Each group has its own sums, and its scale acts on the finished sum. The zero acts
// on the sum of x over the group, which a first pass computes. The two parameters of a row and group are
// loaded straight to registers, while the previous group is multiplied.
//
// Codes and x have separate rings, since 128 bytes are 256 of k in codes and 64 in x. Rows of x share the
// decoding. With tiles of 128 by 128, one group of warps decodes while the other multiplies. Still the kernel
// is bound by issuing instructions: those that scale and zero the sums of a group, then those that decode
// (kernels/cuda/sass.json).
//
// Up to 16 rows of x, sm80/decode.h multiplies instead if it can; its mma.sync adds as wgmma does.
#pragma once

#include "kernels/sm80/linear.h"
#include "kernels/sm90a/stages.h"

namespace qcts::sm90a {
namespace {

constexpr int kStepK = 64, kStepsOfCodes = 4;  // k in a stage of x; steps in a stage of codes

// A block computes kWarpGroups * 64 columns of y by kRows rows.
template <int kRowsOfX, int kWarpGroups>
struct Int4Tile {
  static constexpr int kRows = kRowsOfX, kWeightRows = kWarpGroups * kGroupRows;
  static constexpr int kThreads = kWarpGroups * kGroupThreads + kFetchThreads;
  static constexpr int kCodeBytes = kWeightRows * kRowBytes, kXBytes = kRows * kRowBytes;
  // 32 KiB of codes are fetched ahead, more than the 18 KiB that cover the latency of a multiprocessor's
  // share of memory bandwidth. x comes from L2. Codes must be as far ahead as x is.
  static constexpr int kCodeStages = kWarpGroups == 1 ? 5 : 3, kXStages = 8;
  static_assert(kCodeStages * kStepsOfCodes > kXStages + kStepsOfCodes - 1);
  using CodeRing = Ring<kCodeStages>;
  using XRing = Ring<kXStages>;
  static constexpr int kBarriersAt = kCodeStages * kCodeBytes + kXStages * kXBytes;
  static constexpr uint32_t kSharedBytes = kBarriersAt + CodeRing::kBytes + XRing::kBytes;
  static_assert(kSharedBytes <= 227 << 10);

  CodeRing codes;
  XRing x;
  QCTS_DEVICE Int4Tile()
      : codes{reinterpret_cast<uint64_t*>(shared_memory() + kBarriersAt)},
        x{reinterpret_cast<uint64_t*>(shared_memory() + kBarriersAt + CodeRing::kBytes)} {}
  static QCTS_DEVICE uint8_t* codes_at(int stage) {
    return shared_memory() + stage % kCodeStages * kCodeBytes;
  }
  static QCTS_DEVICE uint8_t* x_at(int step) {
    return shared_memory() + kCodeStages * kCodeBytes + step % kXStages * kXBytes;
  }
};

struct Int4Product {
  Source codes, x;  // [n, k / 2], [m, k] of bfloat16
  Weight weight;
  const uint8_t* x_sums;  // [groups, m], float32
  int64_t k;
  Output out;
};

template <int kRows, int kElementBytes>
QCTS_DEVICE void fetch_rows(const Source& from, uint8_t* to, int64_t row, int byte, uint64_t* full) {
  if (!from.by_box) {
    fetch_by_elements<kRows, kElementBytes>(from, to, row, byte);
    fence_async();
    sync_warp();
  }
  if (lane_index() != 0) return;
  arrive_expecting(full, from.by_box ? kRows * kRowBytes : 0);
  if (from.by_box) copy_box(to, &from.map, byte, static_cast<int32_t>(row), full);
}

template <class Tile>
QCTS_DEVICE void fetch_int4(const Int4Product& p, const Tile& tile, Place at, int steps) {
  if (p.codes.by_box && p.x.by_box && lane_index() != 0) return;
  const int stages = (steps + kStepsOfCodes - 1) / kStepsOfCodes;
  const auto fetch_codes = [&](int stage) {
    fetch_rows<Tile::kWeightRows, 1>(p.codes, Tile::codes_at(stage), at.n, stage * kRowBytes,
                                     tile.codes.full(stage));
  };
  for (int stage = 0; stage < Tile::kCodeStages && stage < stages; ++stage) fetch_codes(stage);
  for (int step = 0; step < steps; ++step) {
    tile.x.wait_empty(step);
    fetch_rows<Tile::kRows, 2>(p.x, Tile::x_at(step), at.m, step * kRowBytes, tile.x.full(step));
    // If the stage of x that became free held the last step of a stage of codes, that stage of codes is free
    // too. So it needs no separate barrier.
    const int used = step - Tile::kXStages, next = used / kStepsOfCodes + Tile::kCodeStages;
    if (used >= 0 && used % kStepsOfCodes == kStepsOfCodes - 1 && next < stages) fetch_codes(next);
  }
}

// The sums of the current group, and the totals of the groups before it.
template <class Tile, class Decoder, int kMatrices>
struct Int4Sums {
  static constexpr int kSums = Tile::kRows / 2;
  const Int4Product& p;
  Place at;  // place of the warp
  float sums[kSums] = {}, totals[kSums] = {};
  Words2 next[2];  // parameters of rows l / 4 and l / 4 + 8

  QCTS_DEVICE Int4Sums(const Int4Product& product, Place of_warp) : p(product), at(of_warp) { load(0); }

  // Adds the products of kMatrices * 16 of k. `codes` points to the codes of the warp's first row. `chunk`
  // counts the units of 16 bytes, 32 of k each, in a row.
  QCTS_DEVICE void multiply(const uint8_t* codes, int chunk, uint64_t x) {
    const int lane = static_cast<int>(lane_index()), row = lane / 4, byte = lane % 4;
    uint32_t a[kMatrices][4];
    QCTS_UNROLL
    for (int i = 0; i < kMatrices / 2; ++i) {
      const uint8_t* from = codes + row * kRowBytes + ((chunk + i) ^ row) * 16;
      const auto upper = load_shared<Words4>(from), lower = load_shared<Words4>(from + 8 * kRowBytes);
      QCTS_UNROLL
      for (int word = 0; word < 4; ++word) {
        uint32_t* to = a[2 * i + word / 2] + word % 2 * 2;
        to[0] = Decoder::template pair<BF16>(upper.word[word] >> 8 * byte, 0);
        to[1] = Decoder::template pair<BF16>(lower.word[word] >> 8 * byte, 0);
      }
    }
    wgmma_fence();
    QCTS_UNROLL
    for (int i = 0; i < kMatrices; ++i) wgmma_bf16(sums, a[i], x + 2 * i);
    wgmma_commit();
    wgmma_wait<0>();
  }

  // Ends group `group`: totals += scale * sums + zero * the sum of x. Loads the parameters of the next group.
  QCTS_DEVICE void scale_sums(int group, bool is_last) {
    const Words2 of[2] = {next[0], next[1]};
    if (!is_last) load(group + 1);
    QCTS_UNROLL
    for (int i = 0; i < kSums; ++i) {
      totals[i] = fmaf(float_of(of[i / 2 % 2].word[0]), sums[i], totals[i]);
      sums[i] = 0;
    }
    const float zeros[2] = {float_of(of[0].word[1]), float_of(of[1].word[1])};
    if (zeros[0] == 0 && zeros[1] == 0) return;  // also leaves infinities of x alone
    QCTS_UNROLL
    for (int i = 0; i < kSums / 2; ++i) {
      const int64_t m = at.m + i / 2 * 8 + lane_index() % 4 * 2 + i % 2;
      if (m >= p.out.m) continue;
      const float of_x = float_of(load_global<uint32_t>(p.x_sums + 4 * (group * p.out.m + m)));
      QCTS_UNROLL
      for (int half = 0; half < 2; ++half) {
        float& total = totals[i / 2 * 4 + 2 * half + i % 2];
        if (zeros[half] != 0) total = fmaf(zeros[half], of_x, total);
      }
    }
  }

 private:
  QCTS_DEVICE void load(int group) {
    QCTS_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int64_t n = at.n + lane_index() / 4 + 8 * half;
      next[half] = n < p.out.n ? p.weight.parameters<false>(n, group) : Words2{};
    }
  }
};

// The number of elements in a group is a multiple of kMatrices * 16.
template <class Tile, class Decoder, int kMatrices>
QCTS_DEVICE void multiply_int4(const Int4Product& p, const Tile& tile, Place at, int steps) {
  constexpr int kPartK = 16 * kMatrices;
  const Place of_warp = {at.n + static_cast<int64_t>(warp_index()) * 16, at.m};
  Int4Sums<Tile, Decoder, kMatrices> warp(p, of_warp);
  int group = 0, in_group = 0;
  for (int step = 0; step < steps; ++step) {
    const int stage = step / kStepsOfCodes;
    if (step % kStepsOfCodes == 0) tile.codes.wait_full(stage);
    tile.x.wait_full(step);
    const uint8_t* codes = Tile::codes_at(stage) + warp_index() * 16 * kRowBytes;
    const uint64_t x = matrix_descriptor(Tile::x_at(step));
    for (int part = 0; part < kStepK / kPartK; ++part) {
      const int64_t k = int64_t{step} * kStepK + part * kPartK;
      if (k >= p.k) break;
      warp.multiply(codes, step % kStepsOfCodes * 2 + part * kMatrices / 2, x + 2 * kMatrices * part);
      in_group += kPartK;
      const bool is_last = k + kPartK >= p.k;
      if (in_group < p.weight.group && !is_last) continue;
      warp.scale_sums(group++, is_last);
      in_group = 0;
    }
    tile.x.release(step);
  }
  store_tile(p.out, of_warp, warp.totals, [](int64_t) { return 1.0f; });
}

template <class Tile, class Decoder, int kMatrices>
__global__ void __launch_bounds__(Tile::kThreads, 1) int4_gemm(const __grid_constant__ Int4Product p) {
  const Tile tile;
  const Place at = place_of_block<Tile::kWeightRows, Tile::kRows>(p.out.n, p.out.m);
  const int steps = static_cast<int>((p.k + kStepK - 1) / kStepK);
  const int warps = multiplying_warps<Tile::kWeightRows>(p.out.n - at.n);
  if (thread_index() == 0) {
    tile.codes.make_full();
    tile.x.make_full();
    tile.x.make_empty(static_cast<uint32_t>(warps));
    fence_barriers();
  }
  sync_block();
  if (thread_index() >= Tile::kThreads - kFetchThreads)
    fetch_int4(p, tile, at, steps);
  else if (static_cast<int>(warp_index()) < warps)
    multiply_int4<Tile, Decoder, kMatrices>(p, tile, at, steps);
}

// On the host.

constexpr int64_t kLeastGroup = 32;

template <const qcts_kernel& kKernel>
qcts_status supports_int4(const qcts_problem* p, char* why, size_t why_size) {
  if (check_problem(kKernel, p, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  if (p->x_dtype != QCTS_BF16) return refuse(QCTS_UNSUPPORTED, why, why_size, "x must be bfloat16");
  if (p->group % kLeastGroup != 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: needs a multiple of %lld",
                  static_cast<long long>(p->group), static_cast<long long>(kLeastGroup));
  return check_dimensions(*p, why, why_size);
}

[[maybe_unused]] uint64_t int4_workspace_bytes(const qcts_problem* p) {
  return p->group <= 0 ? 0 : static_cast<uint64_t>(p->m * (p->k / p->group)) * sizeof(float);
}

template <class Decoder, class Tile>
qcts_status launch_int4(const qcts_problem& p, Int4Product& product) {
  if (make_source(product.weight.codes, p.k / 2, p.n, p.k / 2, Tile::kWeightRows, &product.codes) !=
          QCTS_OK ||
      make_source(p.x, p.ldx_bytes, p.m, 2 * p.k, Tile::kRows, &product.x) != QCTS_OK)
    return QCTS_FAILED;
  const Launch at = {.blocks_x = blocks_for(p.n, Tile::kWeightRows) * blocks_for(p.m, Tile::kRows),
                     .threads = Tile::kThreads,
                     .shared_bytes = Tile::kSharedBytes};
  // The larger tile has no registers for the operands of 64 of k, since nine warps leave 168 per thread.
  if constexpr (Tile::kWeightRows == kGroupRows)
    if (p.group % kStepK == 0) return launch(p, at, int4_gemm<Tile, Decoder, 4>, product);
  return launch(p, at, int4_gemm<Tile, Decoder, 2>, product);
}

template <class Decoder>
qcts_status run_int4(const qcts_problem& p, const Weight& weight) {
  if (takes_decode<Decoder>(p, weight)) return launch_decode<BF16, Decoder>(p, weight);
  auto* sums = static_cast<uint8_t*>(p.workspace);
  const qcts_status status =
      launch(p, {.blocks_x = blocks_for(p.m, kSumThreads) * (p.k / p.group), .threads = kSumThreads},
             sum_x<BF16>, product_of(p, weight.codes, Decoder::kBits), p.group, sums);
  if (status != QCTS_OK) return status;
  Int4Product product = {{}, {}, weight, sums, p.k, output_of(p)};
  if (p.m <= 64) return launch_int4<Decoder, Int4Tile<64, 1>>(p, product);
  return launch_int4<Decoder, Int4Tile<128, 2>>(p, product);
}

// wgmma adds sixteen products of bfloat16 at a time to the sum so far.
constexpr qcts_fused_sums kBf16FusedSums = {sizeof(qcts_fused_sums), 16, 25, 23, 0, 0};

template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
constexpr qcts_kernel int4_row(const char* scheme) {
  qcts_kernel entry = linear_entry(
      scheme, "sm90a",
      "codes to registers to bf16 tensor cores, scales on sums of groups; up to m = 16 warps that "
      "split k, bound by reading half a byte per weight, else x by boxes of 64 k, bound by the "
      "instructions that scale sums and decode",
      QCTS_F32,
      {.supports = supports_int4<kKernel>,
       .run = run_supported_launch<kKernel, kRun>,
       .workspace_bytes = int4_workspace_bytes,
       .failure = last_failure});
  // Up to 16 aligned rows are added in a different order from more rows, or rows that are not aligned.
  entry.claims &= ~static_cast<uint32_t>(QCTS_CLAIM_BATCH_INVARIANT);
  entry.fused_sums = kBf16FusedSums;
  return entry;
}

}  // namespace
}  // namespace qcts::sm90a
