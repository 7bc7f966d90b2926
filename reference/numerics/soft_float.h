// SPDX-License-Identifier: BSD-3-Clause
// Floating-point element types in software.
// Converts bits to double and back, and does arithmetic that rounds to a type.
// Uses neither _Float16 nor F16C, because their results differ between machines.
//
// Widths and special values:
//   float64, float32, float16     IEEE 754-2019 binary64, binary32, binary16
//   bfloat16                      binary32 without its low 16 bits
//   float8_e4m3fn, float8_e5m2    OCP 8-bit Floating Point Specification 1.0, section 5;
//                                 E4M3 has no Inf, and its NaN is S.1111.111
//   float8_e8m0fnu                OCP Microscaling Formats 1.0, section 5.4: 2^(byte - 127);
//                                 255 is NaN; it has no sign and no zero
//   float4_e2m1fn_x2              OCP Microscaling Formats 1.0, section 5.3.3;
//                                 an element here is one nibble (0..15), without Inf and NaN
//   float6_e2m3fn, float6_e3m2fn  OCP Microscaling Formats 1.0, section 5.3.2;
//                                 an element here is the low six bits of a byte, without Inf and NaN
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/formats/tensor.h"

namespace qcts {

// The bit layout of an element type.
// A normal value is (-1)^sign * 2^(exponent - bias) * 1.mantissa.
// A subnormal value is (-1)^sign * 2^(1 - bias) * 0.mantissa.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  bool has_sign = true;
  bool has_infinity = true;  // false: overflow saturates
  bool has_nan = true;
  double max = 0;            // largest finite value
  double min_normal = 0;     // smallest positive normal value
  double min_subnormal = 0;  // smallest positive value; equals min_normal if there are no subnormals
  // Relative error of rounding to nearest in the normal range: 2^-(mantissa_bits + 1).
  double unit_roundoff = 0;
};

bool is_float(DType dtype);
// Returns true for a float type whose elements are whole bytes.
bool has_float_elements(DType dtype);
// Returns the layout of a type. Throws std::invalid_argument for a type that is not in the table above.
const FloatFormat& float_format(DType dtype);

// Returns the exact value of one element, or NaN for every NaN pattern.
double decode_float(DType dtype, uint64_t bits);

// Returns the nearest element, ties to even, with one rounding.
// Overflow follows the casts of torch 2.13 on a CPU.
// The sources are Float8_e4m3fn.h, Float8_e5m2.h, Half.h and BFloat16.h in c10/util.
// e4m3fn saturates to +-448, also from Inf. The other types overflow to Inf if they have it.
// NaN keeps its sign and becomes the quiet pattern; types without NaN get 0.
// For e8m0 (c10/util/Float8_e8m0fnu.h), the sign is ignored, ties go up, and Inf gives NaN.
// Values below half of 2^-127 and 0 give 2^-127.
uint64_t encode_float(DType dtype, double value);

// Returns decode_float(encode_float(value)).
double round_to(DType dtype, double value);
float round_to(DType dtype, float value);

// Compute one operation as ATen's CPU kernels do it for narrow types.
// The kernels widen the operands to float32, compute in float32, and round to `dtype`.
// The source is aten/src/ATen/native/cpu/BinaryOpsKernel.cpp, opmath.
// For float32 this is the plain operation.
float add_in(DType dtype, float a, float b);
float sub_in(DType dtype, float a, float b);
float mul_in(DType dtype, float a, float b);
float div_in(DType dtype, float a, float b);
// Returns a * b + c with one rounding, for any exponents.
// a * b must be exact in double, as the product of a code and a scale is.
double fma_in(DType dtype, double a, double b, double c);

// Loads element `index` of a row-major little-endian buffer. Supports types of whole bytes only.
double load_float(DType dtype, std::span<const std::byte> bytes, size_t index);
void store_float(DType dtype, std::span<std::byte> bytes, size_t index, double value);
std::vector<float> load_floats(DType dtype, std::span<const std::byte> bytes);
std::vector<double> load_doubles(DType dtype, std::span<const std::byte> bytes);

}  // namespace qcts
