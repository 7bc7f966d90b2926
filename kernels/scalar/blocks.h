// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of mx, nvfp4 and float8, weights or activations, one element at a time.
#pragma once

#include "kernels/families/block_scales.h"
#include "kernels/families/copy_planes.h"
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"
#include "kernels/families/float8_scales.h"

namespace qcts::scalar {
namespace {

[[maybe_unused]] float largest_of(uint32_t dtype, const char* elements, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float magnitude = __builtin_fabsf(load(dtype, elements, i));
    if (magnitude != magnitude) return __builtin_bit_cast(float, 0x7FC00000u);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

// Writes one code per byte, or two e2m1 codes per byte with the even code in the low nibble.
[[maybe_unused]] void quantize_block(uint32_t dtype, const char* elements, int64_t count, SmallFloat format,
                                     const BlockScale& scale, uint8_t* codes) {
  const auto code = [&](int64_t i) {
    return small_float_code(format, scaled(scale, load(dtype, elements, i)));
  };
  if (format == SmallFloat::e2m1) {
    for (int64_t pair = 0; pair < count / 2; ++pair)
      codes[pair] = static_cast<uint8_t>(code(2 * pair) | code(2 * pair + 1) << 4);
  } else {
    for (int64_t i = 0; i < count; ++i) codes[i] = code(i);
  }
}

[[maybe_unused]] void quantize_mx_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* codes = static_cast<uint8_t*>(out_plane(p, "qdata"));
  auto* scales = static_cast<uint8_t*>(out_plane(p, "scale"));
  const MxRecipe recipe = mx_recipe(p);
  const FloatRows from = float_rows(p);
  const int64_t elem_bytes = dtype_bytes(from.dtype), per_byte = recipe.element == SmallFloat::e2m1 ? 2 : 1;
  for (int64_t row = first; row < last; ++row)
    for (int64_t k = 0; k < p.k; k += 32) {
      const char* block = from.row(row) + k * elem_bytes;
      const int64_t at = row * p.k + k;
      const BlockScale scale = mx_scale(recipe, largest_of(from.dtype, block, 32));
      scales[at / 32] = scale.byte;
      quantize_block(from.dtype, block, 32, recipe.element, scale, codes + at / per_byte);
    }
}

[[maybe_unused]] void quantize_nvfp4_rows(const qcts_problem& p, const float* whole, int64_t first,
                                          int64_t last) {
  auto* pairs = static_cast<uint8_t*>(out_plane(p, "qdata"));
  auto* scales = static_cast<uint8_t*>(out_plane(p, "scale"));
  const FloatRows from = float_rows(p);
  const int64_t elem_bytes = dtype_bytes(from.dtype);
  for (int64_t row = first; row < last; ++row)
    for (int64_t k = 0; k < p.k; k += 16) {
      const char* block = from.row(row) + k * elem_bytes;
      const int64_t at = row * p.k + k;
      const BlockScale scale = nvfp4_scale(largest_of(from.dtype, block, 16), whole);
      scales[at / 16] = scale.byte;
      quantize_block(from.dtype, block, 16, SmallFloat::e2m1, scale, pairs + at / 2);
    }
}
[[maybe_unused]] void quantize_nvfp4_problem(const qcts_problem* p) {
  quantize_nvfp4(*p, largest_of, quantize_nvfp4_rows);
}

// Quantize bands of float8 (kernels/families/float8_scales.h).
[[maybe_unused]] void quantize_float8_codes(const Float8Task& task, int64_t row, int64_t first_k,
                                            float scale) {
  for (int64_t k = first_k; k < first_k + task.block_cols; ++k)
    task.codes[row * task.k + k] =
        float8_code(task.format, load(task.from.dtype, task.from.row(row), k), scale);
}

[[maybe_unused]] void quantize_float8_bands(const Float8Task& task, int64_t first, int64_t last) {
  const int64_t elem_bytes = dtype_bytes(task.from.dtype);
  if (task.one_scale()) {
    for (int64_t row = first; row < last; ++row) quantize_float8_codes(task, row, 0, load_scale(task, 0));
    return;
  }
  for (int64_t band = first; band < last; ++band)
    for (int64_t k = 0; k < task.k; k += task.block_cols) {
      float largest = 0;
      for (int64_t row = band * task.block_rows; row < (band + 1) * task.block_rows; ++row) {
        const float mine = largest_of(task.from.dtype, task.from.row(row) + k * elem_bytes, task.block_cols);
        if (!(mine <= largest) && largest == largest) largest = mine;
      }
      const float scale = float8_scale(task, largest);
      store_scale(task, band * task.across() + k / task.block_cols, scale);
      for (int64_t row = band * task.block_rows; row < (band + 1) * task.block_rows; ++row)
        quantize_float8_codes(task, row, k, scale);
    }
}
[[maybe_unused]] void quantize_float8_problem(const qcts_problem* p) {
  quantize_float8(*p, largest_of, quantize_float8_bands);
}

// Move scales of blocks of kLength into tiles of 128 x 4 and back. The codes keep their order.
template <int64_t kLength>
void pack_block_scales(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  copy_planes_but(p, "scale");
  swizzle_scales(p.threads, {p.n, p.k / kLength}, in_plane(p, "scale"), out_plane(p, "scale"));
}
template <int64_t kLength>
void unpack_block_scales(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  copy_planes_but(p, "scale");
  unswizzle_scales(p.threads, {p.n, p.k / kLength}, in_plane(p, "scale"), out_plane(p, "scale"));
}

}  // namespace
}  // namespace qcts::scalar
