// SPDX-License-Identifier: BSD-3-Clause
// x, bias and y as the frames of `linear` see them.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/sm80/operands.h"

namespace qcts::sm80 {
namespace {

// x [m,k] and y [m,n]. The weight has n rows.
struct Product {
  const uint8_t* x;
  uint8_t* y;
  const void* bias;
  const uint8_t* x_sums;  // [groups, m], float32; NULL if the decoder has no zero
  int64_t ldx_bytes, ldy_bytes;
  int64_t m, n, k;
  uint32_t x_dtype, y_dtype, bias_dtype;
  bool has_aligned_x, has_aligned_codes;  // rows begin at multiples of 16 bytes
  bool has_paired_y;                      // rows begin at multiples of 4 bytes
};

[[maybe_unused]] Product product_of(const qcts_problem& p, const uint8_t* codes, int64_t code_bits) {
  const int64_t code_bytes = p.k * code_bits / 8;
  return {static_cast<const uint8_t*>(p.x),
          static_cast<uint8_t*>(p.y),
          p.bias,
          nullptr,
          p.ldx_bytes,
          p.ldy_bytes,
          p.m,
          p.n,
          p.k,
          p.x_dtype,
          p.y_dtype,
          p.bias_dtype,
          has_aligned_rows(p.x, p.m, p.ldx_bytes),
          has_aligned_rows(codes, p.n, code_bytes),
          reinterpret_cast<uintptr_t>(p.y) % 4 == 0 && (p.m <= 1 || p.ldy_bytes % 4 == 0)};
}

// The same for a decoder (kernels/sm80/operands.h). Each tile is aligned if the first one is.
template <class Decoder>
Product product_of(const qcts_problem& p, const Weight& weight) {
  Product product = product_of(p, weight.codes, Decoder::kBits);
  if (kReadsTiles<Decoder>) product.has_aligned_codes = is_multiple_of_16(weight.codes);
  return product;
}

QCTS_DEVICE float bias_of(const Product& p, int64_t n) {
  return p.bias == nullptr ? 0 : load_float(p.bias_dtype, p.bias, n);
}

// Loads the 16 bytes at `from`. Only `bytes_left` bytes belong to the row, and zeros replace the rest.
// Elements have kElementBytes.
template <int kElementBytes>
QCTS_DEVICE Words4 load_elements(const uint8_t* from, int64_t bytes_left) {
  Words4 chunk = {};
  QCTS_UNROLL
  for (int i = 0; i < 16; i += kElementBytes) {
    if (i >= bytes_left) continue;
    const uint32_t bits = kElementBytes == 1   ? load_global<uint8_t>(from + i)
                          : kElementBytes == 2 ? load_global<uint16_t>(from + i)
                                               : load_global<uint32_t>(from + i);
    chunk.word[i / 4] |= bits << (8 * (i % 4));
  }
  return chunk;
}
template <int kElementBytes>
QCTS_DEVICE Words4 load_row_chunk(const uint8_t* from, int64_t bytes_left, bool is_aligned) {
  if (is_aligned && bytes_left >= 16) return load_global<Words4>(from);
  return load_elements<kElementBytes>(from, bytes_left);
}

}  // namespace
}  // namespace qcts::sm80
