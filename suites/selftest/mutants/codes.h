// SPDX-License-Identifier: BSD-3-Clause
// Blocks of values to codes and back, with the faults of the operations that quantize: a8_*, ai_*, af8_*,
// amx_*, anv_*, qmx_*, qnv_*, qix_*, and those of w8_*, da_* and lmd_* that strike x on its way into a sum.
// Right where none is planted: the recipes are those of torchao 0.18.0 that reference/schemes names.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::mutants {

enum class Mapping8 : uint8_t { symmetric, no_clipping, asymmetric };

// Integer codes with a scale and a zero point a group.
struct IntRecipe {
  Mapping8 mapping;
  int low, high;         // the codes
  float least;           // scale
  uint32_t dtype;        // of the values, in which scale and zero point are chosen
  uint32_t scale_dtype;  // in which the scale is stored
};
struct IntScale {
  float scale = 0;
  int zero = 0;
};
// int8 rows of x: by a scale that is chosen, or given.
constexpr const char* kInt8X =
    "int8_row:dyn_row_sym,dyn_row_asym,static_tensor_sym,static_tensor_sym_zp,static_tensor_asym";
IntRecipe int8_recipe(const qcts_problem& p);   // of x of int8_row
IntRecipe token_recipe(const qcts_problem& p);  // of x of 8da4w
IntScale choose_int(const IntRecipe& recipe, std::span<const float> values);
bool is_given(const qcts_problem& p);  // the scale of x, one for all rows
// The given scale, or what is chosen for `row`.
IntScale scale_of_x(const IntRecipe& recipe, const qcts_problem& p, std::span<const float> row);
int int_code(const IntRecipe& recipe, IntScale chosen, float value);

// 32 values, their codes one a byte; the byte of their scale. `last`: no block of the row follows.
uint8_t mx_block(const qcts_problem& p, std::span<const float> values, bool last, uint8_t* codes);
float mx_value(const qcts_problem& p, uint8_t code);
bool mx_pairs(const qcts_problem& p);  // two codes a byte

// 16 values; `whole` NULL at one level.
uint8_t nvfp4_block(std::span<const float> values, const float* whole, uint8_t* codes);
// The scale of everything: max |x| / (448 * 6).
float nvfp4_whole(std::span<const float> values);

// One row of x, its magnitude held between the bounds of the planes hp_value_lb and hp_value_ub; its scale.
float fp8_row(const qcts_problem& p, std::span<const float> values, uint8_t* codes);

// `count` elements of dtype as floats.
std::vector<float> floats(uint32_t dtype, const void* data, int64_t count);
// Rows of x, [m, k] or, to be quantized as a weight, [n, k].
std::vector<float> rows_of_x(const qcts_problem& p);

}  // namespace qcts::mutants
