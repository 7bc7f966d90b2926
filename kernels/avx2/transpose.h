// SPDX-License-Identifier: BSD-3-Clause
// Converts the bytes of int4_tinygemm to and from the layouts of ATen's CPU kernels,
// for the AVX2 variants of pack and unpack.
#pragma once

#include "kernels/avx2/elements.h"
#include "kernels/avx2/stores.h"

namespace qcts::avx2 {
namespace {

// Transposes 16 x 16 bytes: to[j * ld_to + i] = from[i * ld_from + j].
// Takes four rounds of interleaves, 64 in all.
[[maybe_unused]] void transpose_16(const uint8_t* from, int64_t ld_from, uint8_t* to, int64_t ld_to) {
  __m128i a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * ld_from));
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
      b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * ld_to), a[i]);
}

// Describes the columns that share a byte in a full block of one of ATen's layouts.
// The columns follow the width of ATen's vectors. Byte i of each k holds column i * step in its low nibble.
// The high nibble of byte i holds the column that is `apart` columns further on.
struct Pairing {
  int64_t columns, step, apart;
};
[[maybe_unused]] Pairing pairing_of(const qcts_problem& p) {
  if (std::strcmp(p.layout, "cpu_avx512") == 0) return {64, 1, 32};
  if (std::strcmp(p.layout, "cpu_avx2") == 0) return {32, 1, 16};
  return {32, 2, 1};  // cpu_default
}

constexpr int64_t kStripBytes = 64;  // size in bytes of a part of one column: 128 values of k

// Writes `bytes` bytes of a result. If the result is streamed, its rows are aligned.
[[maybe_unused]] void write_out(uint8_t* to, const uint8_t* from, int64_t bytes, bool past_caches) {
  if (!past_caches || bytes % 32 != 0) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i < bytes; i += 32)
    store32(to + i, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)), true);
}

// Convert the codes of a full block, and of a last block that n cuts short.
// A column has k_bytes = k / 2 bytes. In a short block, neighbours share a byte in every layout.
using FullBlock = void (*)(const uint8_t* in, int64_t k_bytes, const Pairing& pairing, bool past_caches,
                           uint8_t* out);
using ShortBlock = void (*)(const uint8_t* in, int64_t k_bytes, int64_t columns, uint8_t* out);

// Converts columns [first, last), starting at the beginning of a block.
// Only the last block of a weight is short.
template <FullBlock kFull, ShortBlock kShort>
void convert_blocks(void* context, int64_t first, int64_t last) {
  const qcts_problem& p = *static_cast<const qcts_problem*>(context);
  const auto* in = static_cast<const uint8_t*>(in_plane(p, "qdata"));
  auto* out = static_cast<uint8_t*>(out_plane(p, "qdata"));
  const Pairing pairing = pairing_of(p);
  const int64_t k_bytes = p.k / 2;
  const bool past_caches = is_past_caches(out, p.n * k_bytes, k_bytes);
  for (int64_t n = first; n < last; n += pairing.columns) {
    if (last - n < pairing.columns)
      kShort(in + n * k_bytes, k_bytes, last - n, out + n * k_bytes);
    else
      kFull(in + n * k_bytes, k_bytes, pairing, past_caches, out + n * k_bytes);
  }
  _mm_sfence();
}

// Converts blocks of columns in parallel, then copies the scales, which are the same in both layouts.
template <FullBlock kFull, ShortBlock kShort>
void convert_pairings(const qcts_problem* problem) {
  qcts_problem copy = *problem;
  parallel_for(copy.threads, copy.n, pairing_of(copy).columns, convert_blocks<kFull, kShort>, &copy);
  std::memcpy(out_plane(copy, "scale_and_zero"), in_plane(copy, "scale_and_zero"),
              static_cast<size_t>(copy.k / copy.group * copy.n * 2 * dtype_bytes(copy.w_dtype)));
}

}  // namespace
}  // namespace qcts::avx2
