// SPDX-License-Identifier: BSD-3-Clause
// Reads the planes of the int4 schemes for the vector variants of `linear`,
// which cut weights into their own blocks.
// Each struct has these members:
//   codes(n, k)                      codes k to k + 7, each 0 .. 15; 8 means zero; k is a multiple of 8
//   copy_scales(g, n, scale, zero)   copies a scale and a zero, in the weight's dtype
#pragma once

#include "kernels/families/entry.h"
#include "kernels/families/nibble_words.h"

namespace qcts {
namespace {

// int4_tinygemm: the code of an even k is in the high nibble. Scale and zero are adjacent.
struct TinygemmPlanes {
  const qcts_problem& p;
  const uint8_t* pairs;
  const char* scale_and_zero;
  int64_t bytes;
  explicit TinygemmPlanes(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(in_plane(problem, "qdata"))),
        scale_and_zero(static_cast<const char*>(in_plane(problem, "scale_and_zero"))),
        bytes(dtype_bytes(problem.w_dtype)) {}

  uint32_t codes(int64_t n, int64_t k) const { return load_high_nibbles_first(pairs + (n * p.k + k) / 2); }
  void copy_scales(int64_t g, int64_t n, uint8_t* scale, uint8_t* zero) const {
    const char* at = scale_and_zero + 2 * (g * p.n + n) * bytes;
    std::memcpy(scale, at, static_cast<size_t>(bytes));
    std::memcpy(zero, at + bytes, static_cast<size_t>(bytes));
  }
};

// int4_plain: signed codes; the code of an even k is in the low nibble.
// Scales and zeros have separate planes.
struct PlainPlanes {
  const qcts_problem& p;
  const uint8_t* pairs;
  const char *scales, *zeros;
  int64_t bytes;
  explicit PlainPlanes(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(in_plane(problem, "qdata"))),
        scales(static_cast<const char*>(in_plane(problem, "scale"))),
        zeros(static_cast<const char*>(in_plane(problem, "zero_point"))),
        bytes(dtype_bytes(problem.w_dtype)) {}

  uint32_t codes(int64_t n, int64_t k) const { return load_nibbles(pairs + (n * p.k + k) / 2) ^ 0x88888888u; }
  void copy_scales(int64_t g, int64_t n, uint8_t* scale, uint8_t* zero) const {
    const int64_t at = (g * p.n + n) * bytes;
    std::memcpy(scale, scales + at, static_cast<size_t>(bytes));
    std::memcpy(zero, zeros + at, static_cast<size_t>(bytes));
  }
};

// Packs the codes, scales and zeros of 64 columns, starting at first_n.
// Calls put(codes, column, k, word) for every eight codes. `out` must be filled with zeros.
// Each group has `code_bytes` of codes, followed by scales and zeros.
template <class Source, class Put>
void put_int4_groups(const Source& source, int64_t first_n, int64_t group_bytes, int64_t code_bytes,
                     const Put& put, uint8_t* out) {
  const qcts_problem& p = source.p;
  const int64_t columns = p.n - first_n < kPlaneColumns ? p.n - first_n : kPlaneColumns, bytes = source.bytes;
  for (int64_t g = 0; g < p.k / p.group; ++g, out += group_bytes) {
    uint8_t* scales = out + code_bytes;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t k = 0; k < p.group; k += 8) put(out, c, k, source.codes(first_n + c, g * p.group + k));
      source.copy_scales(g, first_n + c, scales + c * bytes, scales + (kPlaneColumns + c) * bytes);
    }
  }
}

}  // namespace
}  // namespace qcts
