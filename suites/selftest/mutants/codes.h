// SPDX-License-Identifier: BSD-3-Clause
// Converts blocks of values to codes and back, with the faults of the operations that quantize.
// The names of these faults begin with a8_, ai_, af8_, amx_, anv_, qmx_, qnv_ and qix_.
// Faults named w8_*, da_* and lmd_* are included if they affect x before a sum.
// Without a planted fault, the functions are correct.
// The recipes are the same as torchao 0.18.0's, which reference/schemes names.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::mutants {

enum class Mapping8 : uint8_t { symmetric, no_clipping, asymmetric };

// Integer codes with a scale and a zero point per group.
struct IntRecipe {
  Mapping8 mapping;
  int low, high;         // smallest and largest code
  float least;           // lower limit of the scale
  uint32_t dtype;        // type of the values, in which scale and zero point are computed
  uint32_t scale_dtype;  // type of the stored scale
};
struct IntScale {
  float scale = 0;
  int zero = 0;
};
// The kernels that quantize x to int8 rows, with dynamic or given scales.
constexpr const char* kInt8X =
    "int8_row:dyn_row_sym,dyn_row_asym,static_tensor_sym,static_tensor_sym_zp,static_tensor_asym";
IntRecipe int8_recipe(const qcts_problem& p);   // recipe for x of int8_row
IntRecipe token_recipe(const qcts_problem& p);  // recipe for x of 8da4w
IntScale choose_int(const IntRecipe& recipe, std::span<const float> values);
bool is_given(const qcts_problem& p);  // true if the scale of x is given, one for all rows
// Returns the given scale, or the dynamic one of `row`.
IntScale scale_of_x(const IntRecipe& recipe, const qcts_problem& p, std::span<const float> row);
int int_code(const IntRecipe& recipe, IntScale chosen, float value);

// Encodes 32 values, one code per byte, and returns the byte of their scale.
// `last` is true for the last block of the row.
uint8_t mx_block(const qcts_problem& p, std::span<const float> values, bool last, uint8_t* codes);
float mx_value(const qcts_problem& p, uint8_t code);
bool mx_pairs(const qcts_problem& p);  // true for two codes per byte

// Encodes 16 values. `whole` is NULL for one-level scaling.
uint8_t nvfp4_block(std::span<const float> values, const float* whole, uint8_t* codes);
// Returns the scale of all values: max |x| / (448 * 6).
float nvfp4_whole(std::span<const float> values);

// Quantizes one row of x and returns its scale.
// The magnitude of x is clamped to the planes hp_value_lb and hp_value_ub.
float fp8_row(const qcts_problem& p, std::span<const float> values, uint8_t* codes);

// Returns `count` elements of dtype as floats.
std::vector<float> floats(uint32_t dtype, const void* data, int64_t count);
// Returns the rows of x, which is [m, k], or [n, k] if it is to be quantized as a weight.
std::vector<float> rows_of_x(const qcts_problem& p);

}  // namespace qcts::mutants
