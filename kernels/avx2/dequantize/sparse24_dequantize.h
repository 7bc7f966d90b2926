// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes rows of fp8_sparse24, for the AVX2 variants.
// A part of a row is expanded to codes of one byte each, 32 at a time.
// Then kernels/avx2/dequantize/dequantize_scaled.h scales them.
// Results equal those of dequantize/fp8_sparse24_scalar.cc.
#pragma once

#include "kernels/avx2/dequantize/dequantize_scaled.h"
#include "kernels/avx2/sparse24.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kSparsePartElems = 1024;  // codes of a part; they stay in L1

// Expands `count` codes, a multiple of 8. Writes up to the next multiple of 32.
[[maybe_unused]] void expand_part(const uint8_t* values, const uint8_t* metadata, int64_t count,
                                  uint8_t* codes) {
  const auto thirty_two = [&](int64_t k, const uint8_t* two, const uint8_t* places) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(codes + k), expand24(two, places));
  };
  int64_t k = 0;
  for (; k + 32 <= count; k += 32) thirty_two(k, values + k / 2, metadata + k / 8);
  if (k == count) return;
  uint8_t two[16] = {}, places[4] = {};
  std::memcpy(two, values + k / 2, static_cast<size_t>((count - k) / 2));
  std::memcpy(places, metadata + k / 8, static_cast<size_t>((count - k) / 8));
  thirty_two(k, two, places);
}

// Converts `count` elements that share a scale.
struct SparseRows {
  static void dequantize(uint32_t dtype, const uint8_t* values, const uint8_t* metadata, int64_t count,
                         float scale, bool past_caches, char* to) {
    alignas(32) uint8_t codes[kSparsePartElems];
    for (int64_t k = 0; k < count; k += kSparsePartElems) {
      const int64_t part = count - k < kSparsePartElems ? count - k : kSparsePartElems;
      expand_part(values + k / 2, metadata + k / 8, part, codes);
      scale_floats<Float8::e4m3>(dtype, codes, part, scale, past_caches, to + k * dtype_bytes(dtype));
    }
  }
};

template <class Row>
void dequantize_sparse24(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* values = static_cast<const uint8_t*>(in_plane(p, "qdata"));
  const auto* metadata = static_cast<const uint8_t*>(in_plane(p, "sparse_metadata"));
  const void* scales = in_plane(p, "scale");
  const bool past_caches = is_past_caches(p, p.k);
  for (int64_t n = first; n < last; ++n)
    Row::dequantize(p.w_dtype, values + n * p.k / 2, metadata + n * p.k / 8, p.k,
                    one_element(QCTS_F32, scales, n), past_caches, static_cast<char*>(p.y) + n * p.ldy_bytes);
}

}  // namespace
}  // namespace qcts::avx2
