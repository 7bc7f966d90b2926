// SPDX-License-Identifier: BSD-3-Clause
// MXFP4 and MXFP8 weights, for the variants of `linear` that multiply pairs of bfloat16.
// y is the sum over blocks of 32 of 2^e * sum(x * element), plus bias.
// Elements are e2m1 and e4m3 (kernels/bf16/codes.h).
// Scales are stored as bfloat16, which holds every e8m0, including 2^-127 and NaN.
// If one of 32 elements is NaN, their scale is NaN.
// A block of 64 columns holds the codes for every 32 values of k, followed by 64 scales.
#pragma once

#include "kernels/bf16/codes.h"

namespace qcts::bf16 {
namespace {

constexpr int kBlockK = 32;

template <class Element>
struct MxBlocks : NarrowScales {
  static constexpr int64_t kHeaderBytes = 0;
  static int64_t group(const qcts_problem&) { return kBlockK; }
  static float factor(const uint8_t*) { return 1; }
  static void specialize(const uint8_t*, const auto& use) { use(Element()); }
};

struct Mxfp4 : MxBlocks<Mxfp4> {
  static constexpr int kStep = kNibbleStep, kBytesPerK = kNibbleBytesPerK;
  [[gnu::always_inline]] static __m512i decode(const uint8_t*, const uint8_t* at, int vector, int pair) {
    return look_up_nibbles(kE2m1Table, at, vector, pair);
  }
  static void pack_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    put_blocks(Mxfp4Planes(p), first_n, layout.group_bytes, put_nibbles, out);
  }
};

template <class E4m3>
struct Mxfp8 : MxBlocks<Mxfp8<E4m3>> {
  static constexpr int kStep = kPairStep, kBytesPerK = kPairBytesPerK;
  [[gnu::always_inline]] static __m512i decode(const uint8_t*, const uint8_t* at, int vector, int) {
    return E4m3::pairs(at, vector);
  }
  static void pack_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    put_mx_bytes(p, first_n, layout.group_bytes, put_e4m3<E4m3>, out);
  }
};

[[maybe_unused]] bool is_mxfp4(const qcts_problem& p) {
  return scheme_params(p).element_dtype == QCTS_F4_E2M1_X2;
}

// Selects by element type, so that one entry serves both types.
template <const qcts_kernel& kKernel, class MicroKernel, class E4m3>
struct MxCalls {
  using Eights = Mxfp8<E4m3>;
  static qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
    const qcts_status status = supports_pairs<kKernel, MicroKernel>(p, why, why_size);
    if (status == QCTS_OK && !is_mxfp4(*p) && scheme_params(*p).element_dtype != QCTS_F8_E4M3FN)
      return refuse(QCTS_UNSUPPORTED, why, why_size, "elements of %s: only e2m1 and e4m3 are supported",
                    p->scheme_name);
    return status;
  }
  static uint64_t workspace(const qcts_problem* p) {
    return is_mxfp4(*p) ? MicroKernel::template workspace_bytes<Mxfp4>(p)
                        : MicroKernel::template workspace_bytes<Eights>(p);
  }
  static uint64_t prepared(const qcts_problem* p) {
    return is_mxfp4(*p) ? prepared_bytes<Mxfp4>(p) : prepared_bytes<Eights>(p);
  }
  static void prepare(const qcts_problem* p, void* to) {
    is_mxfp4(*p) ? pack_weight<Mxfp4>(p, to) : pack_weight<Eights>(p, to);
  }
  static void run(const qcts_problem* p) {
    is_mxfp4(*p) ? MicroKernel::template run<Mxfp4>(p) : MicroKernel::template run<Eights>(p);
  }
};

template <const qcts_kernel& kKernel, class MicroKernel, class E4m3 = ShiftedE4m3>
constexpr qcts_kernel mx_linear_of(const char* description) {
  using Entry = MxCalls<kKernel, MicroKernel, E4m3>;
  return linear_entry("mx", MicroKernel::kVariant, description, MicroKernel::kNumerics,
                      {Entry::supports, run_supported<kKernel, Entry::run>, Entry::workspace, Entry::prepared,
                       prepare_checked<kKernel, Entry::prepare>});
}

}  // namespace
}  // namespace qcts::bf16
