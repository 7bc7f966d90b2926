// SPDX-License-Identifier: BSD-3-Clause
// `linear` with float8_e4m3 weights and x quantized to float8_e4m3. A first pass makes codes and scales of x,
// as quantize_activation does. A second pass multiplies the codes (kernels/sm90a/stages.h), and both scales
// act on the sums. A weight-only problem cannot be computed this way, because its x is not e4m3.
//
// wgmma keeps only 13 bits of a sum of e4m3 products, and loses more the longer it adds. So each stage, 128
// of k, begins at zero, and its sums are added in float32. That costs one addition per sum and stage, a
// quarter of the time of the multiplications. With two groups of warps in a block, one adds while the other
// multiplies.
//
// Up to 16 rows of x, the kernel is bound by reading the weight. A block takes 64 rows of the weight, so
// 8,192 rows fill 128 of the 132 multiprocessors. Five stages ahead are 40 KiB per block, more than the 18
// KiB that cover the latency of a multiprocessor's share of memory bandwidth. Below about 8,000 rows,
// multiprocessors stand idle. Splitting k among blocks would fill them, but would need a pass over the sums.
//
// More rows of x share each read of the weight. Up to 64 rows use the same blocks. Beyond that, tiles are 128
// by 128. There a multiplication reads 96 of the 128 bytes that shared memory gives per clock, and the kernel
// is bound by the tensor cores.
#pragma once

#include "kernels/sm80/fp8_x.h"
#include "kernels/sm90a/stages.h"

namespace qcts::sm90a {
namespace {

constexpr int kPromotedK = kRowBytes;

// A block computes kWarpGroups * 64 columns of y by kRows rows.
template <int kRowsOfX, int kWarpGroups>
struct Fp8Tile {
  static constexpr int kRows = kRowsOfX, kWeightRows = kWarpGroups * kGroupRows;
  static constexpr int kThreads = kWarpGroups * kGroupThreads + kFetchThreads;
  static constexpr int kWeightBytes = kWeightRows * kRowBytes, kXBytes = kRows * kRowBytes;
  static constexpr int kStages = 6, kStageBytes = kWeightBytes + kXBytes;
  static constexpr uint32_t kSharedBytes = kStages * kStageBytes + Ring<kStages>::kBytes;
  static_assert(kSharedBytes <= 227 << 10);
};

struct Fp8Product {
  Source weight, x;  // codes [n, k], [m, k]
  Weight scales;     // scales of the weight
  const uint8_t* x_scales;
  int64_t x_scale_step;  // 0: one for all rows
  int64_t k;
  Output out;
};

template <class Tile>
QCTS_DEVICE uint8_t* fp8_stage(int step) {
  return shared_memory() + step % Tile::kStages * Tile::kStageBytes;
}

template <class Tile>
QCTS_DEVICE void fetch_fp8(const Fp8Product& p, const Ring<Tile::kStages>& ring, Place at, int steps) {
  const bool by_boxes = p.weight.by_box && p.x.by_box;
  if (by_boxes && lane_index() != 0) return;
  for (int step = 0; step < steps; ++step) {
    const int k = step * kPromotedK;
    uint8_t *weight = fp8_stage<Tile>(step), *x = weight + Tile::kWeightBytes;
    ring.wait_empty(step);
    if (!by_boxes) {
      if (!p.weight.by_box) fetch_by_elements<Tile::kWeightRows, 1>(p.weight, weight, at.n, k);
      if (!p.x.by_box) fetch_by_elements<Tile::kRows, 1>(p.x, x, at.m, k);
      fence_async();
      sync_warp();
    }
    if (lane_index() != 0) continue;
    uint64_t* full = ring.full(step);
    arrive_expecting(full, (p.weight.by_box ? Tile::kWeightBytes : 0) + (p.x.by_box ? Tile::kXBytes : 0));
    if (p.weight.by_box) copy_box(weight, &p.weight.map, k, static_cast<int32_t>(at.n), full);
    if (p.x.by_box) copy_box(x, &p.x.map, k, static_cast<int32_t>(at.m), full);
  }
}

template <class Tile>
QCTS_DEVICE void multiply_fp8(const Fp8Product& p, const Ring<Tile::kStages>& ring, Place at, int steps) {
  const int group = static_cast<int>(thread_index()) / kGroupThreads;
  float totals[Tile::kRows / 2] = {};
  for (int step = 0; step < steps; ++step) {
    const uint64_t weight = matrix_descriptor(fp8_stage<Tile>(step) + group * kGroupRows * kRowBytes),
                   x = matrix_descriptor(fp8_stage<Tile>(step) + Tile::kWeightBytes);
    float sums[Tile::kRows / 2] = {};
    ring.wait_full(step);
    wgmma_fence();
    QCTS_UNROLL
    for (int part = 0; part < kRowBytes / 32; ++part) wgmma_e4m3(sums, weight + 2 * part, x + 2 * part);
    wgmma_commit();
    wgmma_wait<0>();
    ring.release(step);
    QCTS_UNROLL
    for (int i = 0; i < Tile::kRows / 2; ++i) totals[i] += sums[i];
  }
  // The weight's scale comes first. It makes the sum one of true weights, which overflows only if y or x
  // does.
  const int64_t first = at.n + static_cast<int64_t>(warp_index()) * 16, row = first + lane_index() / 4;
  QCTS_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int64_t n = row + 8 * half;
    const float scale = n < p.out.n ? float_of(p.scales.parameters<false>(n, 0).word[0]) : 0;
    QCTS_UNROLL
    for (int i = 0; i < Tile::kRows / 4; ++i) totals[i / 2 * 4 + 2 * half + i % 2] *= scale;
  }
  store_tile(p.out, {first, at.m}, totals,
             [&p](int64_t m) { return load_float(QCTS_F32, p.x_scales, m * p.x_scale_step); });
}

template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1) fp8_gemm(const __grid_constant__ Fp8Product p) {
  const Ring<Tile::kStages> ring = {
      reinterpret_cast<uint64_t*>(shared_memory() + Tile::kStages * Tile::kStageBytes)};
  const Place at = place_of_block<Tile::kWeightRows, Tile::kRows>(p.out.n, p.out.m);
  const int steps = static_cast<int>((p.k + kPromotedK - 1) / kPromotedK);
  const int warps = multiplying_warps<Tile::kWeightRows>(p.out.n - at.n);
  if (thread_index() == 0) {
    ring.make_full();
    ring.make_empty(static_cast<uint32_t>(warps));
    fence_barriers();
  }
  sync_block();
  if (thread_index() >= Tile::kThreads - kFetchThreads)
    fetch_fp8<Tile>(p, ring, at, steps);
  else if (static_cast<int>(warp_index()) < warps)
    multiply_fp8<Tile>(p, ring, at, steps);
}

// On the host.

template <class Tile>
qcts_status launch_fp8(const qcts_problem& p, Fp8Product& product, const CodedX& x) {
  if (make_source(product.scales.codes, p.k, p.n, p.k, Tile::kWeightRows, &product.weight) != QCTS_OK ||
      make_source(x.codes, p.k, p.m, p.k, Tile::kRows, &product.x) != QCTS_OK)
    return QCTS_FAILED;
  return launch(p,
                {.blocks_x = blocks_for(p.n, Tile::kWeightRows) * blocks_for(p.m, Tile::kRows),
                 .threads = Tile::kThreads,
                 .shared_bytes = Tile::kSharedBytes},
                fp8_gemm<Tile>, product);
}

// The fields are terms added at once, fraction bits, bits of the result, and promotion. They describe wgmma
// of e4m3 as this kernel uses it.
constexpr qcts_fused_sums kFp8FusedSums = {sizeof(qcts_fused_sums), 32, 13, 13, kPromotedK, 0};

[[maybe_unused]] qcts_status run_fp8_linear(const qcts_problem& p, const Weight& weight) {
  const CodedX x = coded_x(p);
  if (code_x(p, x) != QCTS_OK) return QCTS_FAILED;
  const int64_t x_scale_step = strncmp(p.activation, "dyn_row", 7) == 0 ? 1 : 0;
  Fp8Product product = {{}, {}, weight, x.scales, x_scale_step, p.k, output_of(p)};
  if (p.m <= 16) return launch_fp8<Fp8Tile<16, 1>>(p, product, x);
  if (p.m <= 64) return launch_fp8<Fp8Tile<64, 1>>(p, product, x);
  return launch_fp8<Fp8Tile<128, 2>>(p, product, x);
}

template <const qcts_kernel& kKernel>
qcts_status supports_fp8(const qcts_problem* p, char* why, size_t why_size) {
  if (supports_policy<kKernel>(p, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  const qcts_scheme_params& params = scheme_params(*p);
  if (params.element_dtype != QCTS_F8_E4M3FN)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "only float8_e4m3 weights are supported");
  if (p->group != 0 || params.group_rows > 1)
    return refuse(QCTS_UNSUPPORTED, why, why_size,
                  "scales of blocks: only one scale per row, or one for all, is supported");
  return check_dimensions(*p, why, why_size);
}

template <Weight (*kWeight)(const qcts_problem&)>
qcts_status run_fp8_weight(const qcts_problem& p) {
  return run_fp8_linear(p, kWeight(p));
}

template <const qcts_kernel& kKernel, Weight (*kWeight)(const qcts_problem&)>
constexpr qcts_kernel fp8_dyn_row(const char* scheme) {
  qcts_kernel entry = linear_entry(scheme, "sm90a",
                                   "x coded by a first pass, then e4m3 on tensor cores from boxes of 128 k, "
                                   "each promoted to float32; bound "
                                   "by reading one byte per weight up to m = 16, else by the multiplications",
                                   QCTS_F32,
                                   {.supports = supports_fp8<kKernel>,
                                    .run = run_fp8_policy<kKernel, run_fp8_weight<kWeight>>,
                                    .workspace_bytes = fp8_workspace_bytes,
                                    .failure = last_failure});
  entry.fused_sums = kFp8FusedSums;
  return entry;
}
// For policies that may scale all of x at once, so that rows of x affect each other.
constexpr qcts_kernel with_one_scale_of_x(qcts_kernel entry) {
  entry.claims &= ~static_cast<uint32_t>(QCTS_CLAIM_BATCH_INVARIANT);
  return entry;
}

}  // namespace
}  // namespace qcts::sm90a
