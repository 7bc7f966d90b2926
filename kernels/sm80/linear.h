// SPDX-License-Identifier: BSD-3-Clause
// Rows of kernels.inc for `linear` with float x: the choice between the frames, and what the rows declare.
#pragma once

#include "kernels/sm80/decode.h"
#include "kernels/sm80/gemm.h"
#include "kernels/sm80/gemv_tiles.h"

namespace qcts::sm80 {
namespace {

// Computes the sum of x over each group, for weights with a float zero. It runs once: a block of gemm has x
// in pieces of a stage, and all blocks of a row would compute the sum again. A thread handles one group of a
// row.
constexpr int kSumThreads = 128;
template <class T>
__global__ void __launch_bounds__(kSumThreads) sum_x(const Product p, const int64_t group, uint8_t* sums) {
  const int64_t bands = (p.m + kSumThreads - 1) / kSumThreads, g = quotient(block_x(), bands);
  const int64_t m = (block_x() - g * bands) * kSumThreads + thread_index();
  if (m >= p.m) return;
  float sum = 0;
  for (int64_t k = g * group; k < (g + 1) * group; k += T::kChunk) {
    const Words4 chunk =
        load_row_chunk<T::kBytes>(p.x + m * p.ldx_bytes + k * T::kBytes, 16, p.has_aligned_x);
    QCTS_UNROLL
    for (int i = 0; i < T::kChunk; ++i) sum += T::decode(element<T>(chunk, i));
  }
  store_global(sums + 4 * (g * p.m + m), bits_of(sum));
}

template <class Decoder>
bool takes_gemm(const qcts_problem& p, int64_t group) {
  return p.m > kGemvRows && is_for_gemm<Decoder>(p, group);
}

template <class Decoder>
qcts_status run_linear(const qcts_problem& p, const Weight& weight) {
  if constexpr (kSpreadsPairs<Decoder>) {
    if (takes_decode<Decoder>(p, weight)) {
      // Parameters in tile_packed_4d are bfloat16, and x has their type.
      if constexpr (!kReadsTiles<Decoder>)
        if (p.x_dtype == QCTS_F16) return launch_decode<F16, Decoder>(p, weight);
      return launch_decode<BF16, Decoder>(p, weight);
    }
  }
  if (!takes_gemm<Decoder>(p, weight.group)) {
    if constexpr (kReadsTiles<Decoder>)
      return launch_gemv_tiles<Decoder>(p, weight);
    else
      return launch_gemv<Decoder>(p, weight);
  }
  auto* sums = static_cast<uint8_t*>(p.workspace);
  if constexpr (Decoder::kHasZero) {
    const Launch at = {.blocks_x = blocks_for(p.m, kSumThreads) * (p.k / weight.group),
                       .threads = kSumThreads};
    const Product product = product_of(p, weight.codes, Decoder::kBits);
    const qcts_status status = p.x_dtype == QCTS_BF16
                                   ? launch(p, at, sum_x<BF16>, product, weight.group, sums)
                                   : launch(p, at, sum_x<F16>, product, weight.group, sums);
    if (status != QCTS_OK) return status;
  }
  return launch_gemm<Decoder>(p, weight, sums);
}

// Returns the size of the sums that sum_x() writes, for weights whose groups have float zeros.
template <class Decoder>
uint64_t sums_bytes(const qcts_problem* p) {
  if (p->group <= 0 || !takes_gemm<Decoder>(*p, p->group)) return 0;
  return static_cast<uint64_t>(p->m * (p->k / p->group)) * sizeof(float);
}

[[maybe_unused]] qcts_status check_dimensions(const qcts_problem& p, char* why, size_t why_size) {
  if (p.m <= kMaxDimension && p.n <= kMaxDimension && p.k <= kMaxDimension) return QCTS_OK;
  return refuse(QCTS_UNSUPPORTED, why, why_size, "m, n and k: at most %lld",
                static_cast<long long>(kMaxDimension));
}

// Groups must be multiples of 8, the unit of gemv, or whole rows.
template <const qcts_kernel& kKernel>
qcts_status supports_linear(const qcts_problem* p, char* why, size_t why_size) {
  if (check_problem(kKernel, p, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  if (p->group != 0 && p->group != p->k && p->group % 8 != 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: needs a multiple of 8, or the row",
                  static_cast<long long>(p->group));
  return check_dimensions(*p, why, why_size);
}
template <const qcts_kernel& kKernel>
qcts_status supports_tinygemm(const qcts_problem* p, char* why, size_t why_size) {
  if (supports_linear<kKernel>(p, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  if (!is_tile_packed(p->layout) || p->group % kWordK == 0) return QCTS_OK;
  return refuse(QCTS_UNSUPPORTED, why, why_size,
                "group %lld: a word of layout %s has codes of %d columns, which must be of one group",
                static_cast<long long>(p->group), p->layout, kWordK);
}
template <const qcts_kernel& kKernel>
qcts_status supports_nf4(const qcts_problem* p, char* why, size_t why_size) {
  if (supports_linear<kKernel>(p, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  if (p->k % 64 != 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size,
                  "k = %lld: linear needs blocks of 64 that do not cross rows", static_cast<long long>(p->k));
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
qcts_status run_supported_launch(const qcts_problem* p) {
  if (kKernel.supports(p, nullptr, 0) != QCTS_OK || check_run(kKernel, p) != QCTS_OK) return QCTS_INVALID;
  return p->m == 0 ? QCTS_OK : kRun(*p);
}

// mma.sync of Ampere adds eight products at a time to the sum so far. mma.sync of Hopper adds sixteen, and
// adds them more exactly.
constexpr qcts_fused_sums kAmpereFusedSums = {sizeof(qcts_fused_sums), 8, 24, 23, 0, 0};

// Only the sums and y are rounded. Sums are added in IEEE float32 (gemv) or fused (gemm). The number of rows
// of x decides between the two, so a row among many may differ from the same row by itself.
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
constexpr qcts_kernel linear_row(const char* scheme, const char* description,
                                 qcts_status (*supports)(const qcts_problem*, char*,
                                                         size_t) = supports_linear<kKernel>,
                                 uint64_t (*workspace)(const qcts_problem*) = nullptr) {
  qcts_kernel entry = linear_entry(scheme, "sm80", description, QCTS_F32,
                                   {.supports = supports,
                                    .run = run_supported_launch<kKernel, kRun>,
                                    .workspace_bytes = workspace,
                                    .failure = last_failure});
  entry.claims &= ~static_cast<uint32_t>(QCTS_CLAIM_BATCH_INVARIANT);
  entry.fused_sums = kAmpereFusedSums;
  return entry;
}

constexpr qcts_kernel with_layouts(qcts_kernel entry, const char* layouts) {
  entry.reads_layouts = layouts;
  return entry;
}

// For a decoder that scales weights exactly. Then one sum runs over the whole row, not over a group.
constexpr qcts_kernel with_scaled_weights(qcts_kernel entry) {
  entry.numerics.flags &= ~static_cast<uint32_t>(QCTS_NUM_SCALE_AFTER_SUM);
  return entry;
}

}  // namespace
}  // namespace qcts::sm80
