// SPDX-License-Identifier: BSD-3-Clause
// Scales of blocks and small floats: the work that variants of mx and nvfp4 do once per block or once an odd
// element. The AVX2 variants have the scales in vectors (kernels/avx2/quantize/mx.h,
// kernels/avx2/quantize/nvfp4.h).
#pragma once

#include <cstdint>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Element types of OCP Microscaling Formats 1.0. Six-bit codes are in the low bits of a byte.
enum class SmallFloat : uint8_t { e4m3, e5m2, e2m3, e3m2, e2m1 };

// Rounds to nearest even; beyond the largest code it stays the largest. A NaN keeps its sign: float8 has one
// NaN (all ones); the others get the low bits that the integer arithmetic for normal numbers makes of it
// (torchao 0.18 custom_fp_utils.py, _f32_to_floatx_unpacked).
uint8_t small_float_code(SmallFloat format, float value);

// x becomes the code of x * factor. If the factor is NaN, it replaces the product.
struct BlockScale {
  uint8_t byte;
  float factor;
};
float scaled(const BlockScale& scale, float x);

// How torchao 0.18 mx_tensor.py computes the e8m0 byte of a block from its largest magnitude, which is NaN if
// the block holds one. Floor, ceil and even (to_mx) use its exponent; rceil (_to_mx_rceil) takes the ceiling
// of the float32 logarithm of largest / the largest element.
enum class MxMode : uint8_t { floor, ceil, even, rceil };
struct MxRecipe {
  SmallFloat element;
  MxMode mode;
};
MxRecipe mx_recipe(const qcts_problem& problem);  // from the parameters of its scheme
BlockScale mx_scale(const MxRecipe& recipe, float largest);

// torchao 0.18 nvfp4_tensor.py, nvfp4_quantize: the e4m3 byte of a block of 16. `whole` is the tensor's
// float32 scale, or NULL at one level.
BlockScale nvfp4_scale(float largest, const float* whole);

// Converts e8m0 to bfloat16, which holds every value, including 2^-127 and NaN; e4m3 below likewise. `linear`
// packs scales in this form, because widening it takes one shift.
uint16_t e8m0_as_bf16(uint8_t code);
uint16_t e4m3_as_bf16(uint8_t code);

// The float matrix that quantize and quantize_activation read.
struct FloatRows {
  const char* data;
  int64_t ld_bytes, rows;
  uint32_t dtype;
  const char* row(int64_t i) const { return data + i * ld_bytes; }
};
FloatRows float_rows(const qcts_problem& problem);

// Returns the largest magnitude of `count` elements, or NaN if one of them is NaN.
using Largest = float (*)(uint32_t dtype, const char* elements, int64_t count);

// The same for the whole matrix, with as many threads as the problem allows.
float largest_of_all(const qcts_problem& problem, Largest largest);

// Quantizes rows [first, last) of nvfp4; `whole` as for nvfp4_scale.
using Nvfp4Rows = void (*)(const qcts_problem& problem, const float* whole, int64_t first, int64_t last);
// Quantizes the whole problem. At two levels it first writes the plane per_tensor_scale: from the plane
// act_per_tensor_scale of a static activation, or as largest magnitude / (448 * 6)
// (per_tensor_amax_to_scale).
void quantize_nvfp4(const qcts_problem& problem, Largest largest, Nvfp4Rows rows);

// Scales [rows, cols] of one byte each, and their tiles of 128 x 4, padded with zeros, whose 512 bytes are
// ordered as 32 x 16 (torchao 0.18 mx_formats/utils.py, to_blocked). `threads` is the maximum for a call.
struct ScaleShape {
  int64_t rows, cols;
};
int64_t swizzled_bytes(const ScaleShape& shape);
void swizzle_scales(uint32_t threads, const ScaleShape& shape, const void* plain, void* tiles);
void unswizzle_scales(uint32_t threads, const ScaleShape& shape, const void* tiles, void* plain);

}  // namespace qcts
