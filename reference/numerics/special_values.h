// SPDX-License-Identifier: BSD-3-Clause
// Counts NaNs, infinities and zeros of a buffer by the bits of its elements, without decoding them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reference/formats/tensor.h"

namespace qcts {

// Counts of a row-major little-endian buffer. A complex element is two elements here.
struct SpecialValues {
  uint64_t elements = 0;
  uint64_t nans = 0;
  uint64_t infinities = 0;            // of either sign
  std::optional<uint64_t> first_nan;  // index of the element
  std::optional<uint64_t> first_infinity;
  bool all_zero = true;  // +0 and -0; true for an empty buffer
  // True if the elements have two values, negative infinity and one finite number, as masks of attention do.
  bool is_mask = false;
};

// Returns true if the elements can be NaN or infinite: float64, float32, float16, bfloat16, the float8 types
// and the complex types. float8_e4m3fn, the "fnuz" types and float8_e8m0fnu have NaN, but no infinity.
bool has_special_values(DType dtype);

// Reads every byte once. Throws std::invalid_argument for a type without special values.
SpecialValues special_values(DType dtype, std::span<const std::byte> bytes);

// Returns true if all bytes are zero.
bool all_bytes_zero(std::span<const std::byte> bytes);

}  // namespace qcts
