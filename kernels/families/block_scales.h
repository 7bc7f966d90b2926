// SPDX-License-Identifier: BSD-3-Clause
// Scales of blocks, and the small floats beside them: what the variants of mx and nvfp4 do once a block, or
// once an odd element. Ordinary functions, compiled once for the baseline processor; the AVX2 variants have
// the scales in vectors (kernels/avx2/quantize/mx.h, kernels/avx2/quantize/nvfp4.h).
#pragma once

#include <cstdint>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Element types of OCP Microscaling Formats 1.0. Six-bit ones stand in the low bits of a byte.
enum class SmallFloat : uint8_t { e4m3, e5m2, e2m3, e3m2, e2m1 };

// To nearest even; beyond the largest it stays the largest. A NaN keeps its sign: float8 has one (all ones),
// the others get the low bits of what a normal number's integer arithmetic makes of it (torchao 0.18
// custom_fp_utils.py, _f32_to_floatx_unpacked).
uint8_t small_float_code(SmallFloat format, float value);

// x becomes the code of x * factor; a factor that is NaN stands for the product.
struct BlockScale {
  uint8_t byte;
  float factor;
};
float scaled(const BlockScale& scale, float x);

// How torchao 0.18 mx_tensor.py finds the e8m0 byte of a block from its largest magnitude, NaN if it holds
// one. Floor, ceil and even (to_mx) take the exponent of that; rceil (_to_mx_rceil) the ceiling of the
// float32 logarithm of largest / the largest element.
enum class MxMode : uint8_t { floor, ceil, even, rceil };
struct MxRecipe {
  SmallFloat element;
  MxMode mode;
};
MxRecipe mx_recipe(const qcts_problem& problem);  // by the parameters of its scheme
BlockScale mx_scale(const MxRecipe& recipe, float largest);

// torchao 0.18 nvfp4_tensor.py, nvfp4_quantize: the e4m3 byte of a block of 16. `whole`: the tensor's float32
// scale, NULL at one level.
BlockScale nvfp4_scale(float largest, const float* whole);

// e8m0 as bfloat16, which holds every one, 2^-127 and NaN included, and e4m3 likewise: what `linear` keeps
// beside codes, since widening it takes one shift.
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

// The largest magnitude of `count` elements, NaN if one of them is.
using Largest = float (*)(uint32_t dtype, const char* elements, int64_t count);

// That of the whole matrix, by as many threads as the problem allows.
float largest_of_all(const qcts_problem& problem, Largest largest);

// Rows [first, last) of nvfp4; `whole` as for nvfp4_scale.
using Nvfp4Rows = void (*)(const qcts_problem& problem, const float* whole, int64_t first, int64_t last);
// The whole problem. At two levels the plane per_tensor_scale comes first: the plane act_per_tensor_scale of
// a static activation, or the largest magnitude of all / (448 * 6) (per_tensor_amax_to_scale).
void quantize_nvfp4(const qcts_problem& problem, Largest largest, Nvfp4Rows rows);

// Scales [rows, cols] of a byte each, and tiles of 128 x 4 padded with zeros, whose 512 bytes stand as 32 x
// 16 (torchao 0.18 mx_formats/utils.py, to_blocked). `threads`: the most that a call may use.
struct ScaleShape {
  int64_t rows, cols;
};
int64_t swizzled_bytes(const ScaleShape& shape);
void swizzle_scales(uint32_t threads, const ScaleShape& shape, const void* plain, void* tiles);
void unswizzle_scales(uint32_t threads, const ScaleShape& shape, const void* tiles, void* plain);

}  // namespace qcts
