// SPDX-License-Identifier: BSD-3-Clause
// Float8 e4m3 weights with one scale per row, dense or 2:4 sparse,
// for the variants of `linear` that multiply pairs of bfloat16. y is scale * sum(x * value(code)) + bias.
// On a Zen 4 core, m = 1 reads one byte per weight about as fast as memory supplies it.
// With ShiftedE4m3, 32 codes cost 13 half-vector operations on three units.
// Packing sets the scale of a column to NaN if the column has a NaN code.
// Every sum over that column would be NaN anyway.
// A block of 64 columns holds the codes in pairs, followed by 64 scales (float32).
#pragma once

#include "kernels/bf16/codes.h"
#include "kernels/families/sparse24_planes.h"

namespace qcts::bf16 {
namespace {

// E4m3 lays out and decodes codes. It is ShiftedE4m3, or TableE4m3 of avx512vbmi.
template <class E4m3>
struct Fp8Row {
  static constexpr int kStep = kPairStep, kBytesPerK = kPairBytesPerK;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static __m512i decode(const uint8_t*, const uint8_t* at, int vector, int) {
    return E4m3::pairs(at, vector);
  }
  [[gnu::always_inline]] static void scales(const qcts_problem&, const uint8_t* at, int vector, __m512* scale,
                                            __m512*) {
    *scale = _mm512_loadu_ps(at + vector * 4 * kLanes);
  }
  static void specialize(const uint8_t*, const auto& use) { use(Fp8Row()); }

  static void pack_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const uint8_t*>(in_plane(p, "qdata"));
    pack_parts(p, layout, first_n, out, [&](int64_t n, int64_t first_k, int64_t last_k, const auto& put) {
      for (int64_t k = first_k; k < last_k; ++k) put(k, qdata[n * p.k + k]);
    });
  }

  // part(n, first_k, last_k, put) calls put(k, code) for every code. It may skip zeros.
  template <class Part>
  static void pack_parts(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out,
                         const Part& part) {
    constexpr int64_t kPartElems = 128;
    constexpr uint32_t kNan = 0x7FC00000;
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    uint8_t* scales = out + layout.padded_group * kBytesPerK;
    std::memcpy(scales, static_cast<const char*>(in_plane(p, "scale")) + 4 * first_n,
                static_cast<size_t>(4 * columns));
    for (int64_t k = 0; k < p.k; k += kPartElems)
      for (int64_t c = 0; c < columns; ++c)
        part(first_n + c, k, k + kPartElems < p.k ? k + kPartElems : p.k, [&](int64_t at, uint8_t code) {
          if (put_e4m3<E4m3>(out, c, at, code)) std::memcpy(scales + 4 * c, &kNan, 4);
        });
  }
};

// Two of every four weights along k are stored (kernels/families/sparse24_planes.h).
// Packing fills in the zeros.
// After that, the kernel is the same as for fp8_row:
// it reads one byte per weight, although the checkpoint stores 5 / 8 of a byte, and saves no multiplication.
template <class E4m3>
struct Fp8Sparse24 : Fp8Row<E4m3> {
  static void pack_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    const Sparse24Planes planes(p);
    Fp8Row<E4m3>::pack_parts(p, layout, first_n, out,
                             [&](int64_t n, int64_t first_k, int64_t last_k, const auto& put) {
                               planes.each_code(n, first_k, last_k, put);
                             });
  }
};

}  // namespace
}  // namespace qcts::bf16
