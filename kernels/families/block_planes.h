// SPDX-License-Identifier: BSD-3-Clause
// Reads the planes of mx, nvfp4 and nf4 for the vector variants of `linear`.
// These variants cut weights into blocks of 64 columns and store the scales of a block after its codes.
#pragma once

#include "kernels/families/block_scales.h"
#include "kernels/families/entry.h"
#include "kernels/families/nf4_blocks.h"
#include "kernels/families/nibble_words.h"

namespace qcts {
namespace {

constexpr int64_t kMxBlockElems = 32;

// Each struct for a scheme of four bits has these members:
//   kBlockK                  elements along k that share a scale
//   codes(n, k)              codes k to k + 7; k is a multiple of 8
//   scale_bytes()            size in bytes of a packed scale: bfloat16, or for nf4 the weight's dtype
//   put_scale(n, g, to)      writes a packed scale

struct Mxfp4Planes {
  static constexpr int64_t kBlockK = kMxBlockElems;
  const qcts_problem& p;
  const uint8_t *pairs, *scales;
  explicit Mxfp4Planes(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(in_plane(problem, "qdata"))),
        scales(static_cast<const uint8_t*>(in_plane(problem, "scale"))) {}

  uint32_t codes(int64_t n, int64_t k) const { return load_nibbles(pairs + (n * p.k + k) / 2); }
  static int64_t scale_bytes() { return 2; }
  void put_scale(int64_t n, int64_t g, uint8_t* to) const {
    const uint16_t scale = e8m0_as_bf16(scales[n * (p.k / kBlockK) + g]);
    std::memcpy(to, &scale, 2);
  }
};

struct Nvfp4Planes {
  static constexpr int64_t kBlockK = 16;
  const qcts_problem& p;
  const uint8_t *pairs, *scales;
  explicit Nvfp4Planes(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(in_plane(problem, "qdata"))),
        scales(static_cast<const uint8_t*>(in_plane(problem, "scale"))) {}

  uint32_t codes(int64_t n, int64_t k) const { return load_nibbles(pairs + (n * p.k + k) / 2); }
  static int64_t scale_bytes() { return 2; }
  void put_scale(int64_t n, int64_t g, uint8_t* to) const {
    const uint16_t scale = e4m3_as_bf16(scales[n * (p.k / kBlockK) + g]);
    std::memcpy(to, &scale, 2);
  }
  // Writes the float32 scale of the whole weight, or 1 if the scheme has one level.
  void put_whole_scale(uint8_t* to) const {
    const void* given = in_plane(p, "per_tensor_scale");
    const float one = 1;
    std::memcpy(to, given != nullptr ? given : &one, 4);
  }
};

// The code of an even k is in the high nibble. The planes hold scalers at two levels (nf4_put_scaler).
struct Nf4Planes {
  static constexpr int64_t kBlockK = kNf4Block;
  const qcts_problem& p;
  const uint8_t* pairs;
  Nf4ScalerPlanes scalers;
  explicit Nf4Planes(const qcts_problem& problem)
      : p(problem),
        pairs(static_cast<const uint8_t*>(in_plane(problem, "quantized_data"))),
        scalers{problem.w_dtype, static_cast<const int8_t*>(in_plane(problem, "quantized_scalers")),
                in_plane(problem, "quantization_factor"), in_plane(problem, "scaler_mean")} {}

  uint32_t codes(int64_t n, int64_t k) const { return load_high_nibbles_first(pairs + (n * p.k + k) / 2); }
  int64_t scale_bytes() const { return dtype_bytes(p.w_dtype); }
  void put_scale(int64_t n, int64_t g, uint8_t* to) const {
    nf4_put_scaler(scalers, n * (p.k / kBlockK) + g, to);
  }
};

// Packs the codes and scales of up to 64 columns, starting at first_n.
// Calls put(codes, column, k, word) for every eight codes.
// `out` must be filled with zeros; each block takes `group_bytes` of it.
template <class Planes, class Put>
void put_blocks(const Planes& planes, int64_t first_n, int64_t group_bytes, const Put& put, uint8_t* out) {
  constexpr int64_t kCodeBytes = Planes::kBlockK * kPlaneColumns / 2;
  const qcts_problem& p = planes.p;
  const int64_t columns = p.n - first_n < kPlaneColumns ? p.n - first_n : kPlaneColumns;
  for (int64_t g = 0; g < p.k / Planes::kBlockK; ++g, out += group_bytes)
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t k = 0; k < Planes::kBlockK; k += 8)
        put(out, c, k, planes.codes(first_n + c, g * Planes::kBlockK + k));
      planes.put_scale(first_n + c, g, out + kCodeBytes + c * planes.scale_bytes());
    }
}

// Does the same for mx with one byte per element.
// put(codes, column, k, code) returns true if the code is a NaN.
// The bfloat16 scale of its block then becomes NaN.
template <class Put>
void put_mx_bytes(const qcts_problem& p, int64_t first_n, int64_t group_bytes, const Put& put, uint8_t* out) {
  constexpr uint16_t kNan = 0x7FC0;
  const auto* codes = static_cast<const uint8_t*>(in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(in_plane(p, "scale"));
  const int64_t columns = p.n - first_n < kPlaneColumns ? p.n - first_n : kPlaneColumns;
  for (int64_t g = 0; g < p.k / kMxBlockElems; ++g, out += group_bytes)
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t at = (first_n + c) * p.k + g * kMxBlockElems;
      bool nan = false;
      for (int64_t k = 0; k < kMxBlockElems; ++k) nan |= put(out, c, k, codes[at + k]);
      const uint16_t scale = nan ? kNan : e8m0_as_bf16(scales[at / kMxBlockElems]);
      std::memcpy(out + kMxBlockElems * kPlaneColumns + 2 * c, &scale, 2);
    }
}

}  // namespace
}  // namespace qcts
