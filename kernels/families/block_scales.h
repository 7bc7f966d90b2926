// SPDX-License-Identifier: BSD-3-Clause
// Computes scales of blocks and codes of small floats.
// Variants of mx and nvfp4 use these functions once per block, or for single elements.
// The AVX2 variants compute scales in vectors (kernels/avx2/quantize/mx.h, kernels/avx2/quantize/nvfp4.h).
#pragma once

#include <cstdint>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Element types of OCP Microscaling Formats 1.0. Codes of six bits are in the low bits of a byte.
enum class SmallFloat : uint8_t { e4m3, e5m2, e2m3, e3m2, e2m1 };

// Rounds to nearest even. Values beyond the largest code become the largest code.
// A NaN keeps its sign. For float8, all bits of a NaN except the sign are ones.
// For the other formats, the low bits of a NaN are the result of the integer arithmetic
// for normal numbers (torchao 0.18 custom_fp_utils.py, _f32_to_floatx_unpacked).
uint8_t small_float_code(SmallFloat format, float value);

// The code of x is the code of the product x * factor. If the factor is NaN, it replaces the product.
struct BlockScale {
  uint8_t byte;
  float factor;
};
float scaled(const BlockScale& scale, float x);

// The ways in which torchao 0.18 mx_tensor.py computes the e8m0 byte of a block.
// The input is the largest magnitude of the block, or NaN if the block contains a NaN.
// Floor, ceil and even (to_mx) use its exponent.
// Rceil (_to_mx_rceil) divides it by the largest element and takes the ceiling of the float32 logarithm.
enum class MxMode : uint8_t { floor, ceil, even, rceil };
struct MxRecipe {
  SmallFloat element;
  MxMode mode;
};
MxRecipe mx_recipe(const qcts_problem& problem);  // uses the parameters of the problem's scheme
BlockScale mx_scale(const MxRecipe& recipe, float largest);

// Computes the e4m3 byte of a block of 16 as torchao 0.18 nvfp4_tensor.py, nvfp4_quantize, does.
// `whole` is the float32 scale of the tensor, or NULL if the scheme has one level.
BlockScale nvfp4_scale(float largest, const float* whole);

// Convert e8m0 and e4m3 to bfloat16, which holds every value, including 2^-127 and NaN.
// `linear` packs scales in this form, because it widens them with one shift.
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

// Returns the same for the whole matrix, with as many threads as the problem allows.
float largest_of_all(const qcts_problem& problem, Largest largest);

// Quantizes rows [first, last) of nvfp4. `whole` is the same as for nvfp4_scale.
using Nvfp4Rows = void (*)(const qcts_problem& problem, const float* whole, int64_t first, int64_t last);
// Quantizes the whole problem. If the scheme has two levels, it first writes the plane per_tensor_scale.
// For a static activation, that scale comes from the plane act_per_tensor_scale.
// Otherwise it is largest magnitude / (448 * 6) (per_tensor_amax_to_scale).
void quantize_nvfp4(const qcts_problem& problem, Largest largest, Nvfp4Rows rows);

// Shape [rows, cols] of a matrix of one-byte scales. Its tiles of 128 x 4 are padded with zeros.
// The 512 bytes of a tile are ordered as 32 x 16 (torchao 0.18 mx_formats/utils.py, to_blocked).
// `threads` is the maximum for a call.
struct ScaleShape {
  int64_t rows, cols;
};
int64_t swizzled_bytes(const ScaleShape& shape);
void swizzle_scales(uint32_t threads, const ScaleShape& shape, const void* plain, void* tiles);
void unswizzle_scales(uint32_t threads, const ScaleShape& shape, const void* tiles, void* plain);

}  // namespace qcts
