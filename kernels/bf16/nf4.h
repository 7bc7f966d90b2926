// SPDX-License-Identifier: BSD-3-Clause
// NF4 weights, for the variants of `linear` that multiply pairs of bfloat16.
// y is the sum over blocks of 64 of scaler * sum(x * table[code]), plus bias.
// The table of the file must be bfloat16, as it is for every bfloat16 weight.
// Then it is looked up unchanged (kernels/bf16/codes.h).
// Packing computes the scalers from the two levels in the file and rounds each step to bfloat16.
// A block of 64 columns begins with the table, twice.
// The codes and 64 scalers for every 64 values of k follow.
#pragma once

#include "kernels/bf16/codes.h"

namespace qcts::bf16 {
namespace {

constexpr int kNf4BlockK = 64;

struct Nf4 : NarrowScales {
  static constexpr int kStep = kNibbleStep, kBytesPerK = kNibbleBytesPerK;
  static constexpr int64_t kHeaderBytes = 64;

  static int64_t group(const qcts_problem&) { return kNf4BlockK; }
  static float factor(const uint8_t*) { return 1; }
  [[gnu::always_inline]] static __m512i decode(const uint8_t* header, const uint8_t* at, int vector,
                                               int pair) {
    return look_up_nibbles(header, at, vector, pair);
  }
  static void specialize(const uint8_t*, const auto& use) { use(Nf4()); }

  static void pack_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    for (int half = 0; half < 2; ++half) std::memcpy(out + 32 * half, in_plane(p, "nf4"), 32);
    put_blocks(Nf4Planes(p), first_n, layout.group_bytes, put_nibbles, out + kHeaderBytes);
  }
};

template <const qcts_kernel& kKernel, class MicroKernel>
qcts_status supports_nf4(const qcts_problem* p, char* why, size_t why_size) {
  const qcts_status status = supports_pairs<kKernel, MicroKernel>(p, why, why_size);
  if (status != QCTS_OK) return status;
  if (p->w_dtype != QCTS_BF16) return refuse(QCTS_UNSUPPORTED, why, why_size, "the table must be bfloat16");
  if (p->k % kNf4BlockK != 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size,
                  "k = %lld: linear needs blocks of 64 that do not cross rows", static_cast<long long>(p->k));
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, class MicroKernel>
constexpr qcts_kernel nf4_linear_of(const char* description) {
  qcts_kernel entry = linear_of<kKernel, Nf4, MicroKernel>("nf4", description);
  entry.supports = supports_nf4<kKernel, MicroKernel>;
  return entry;
}

}  // namespace
}  // namespace qcts::bf16
