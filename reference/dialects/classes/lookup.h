// SPDX-License-Identifier: BSD-3-Clause
// Reads parts and attributes of a named tensor as numbers.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

Json attribute_at(const NamedTensor& tensor, std::string_view name);  // null when absent
// Returns the integer; `otherwise` for an absent attribute or another type.
int64_t integer_at(const NamedTensor& tensor, std::string_view name, int64_t otherwise = 0);
// Returns the integers of a list, or of an encoded tuple; 0 for an item that is not one.
std::vector<int64_t> integers_of(const Json& value);

// Returns the first part with one of the names; nullptr when there is none.
const Tensor* first_part(const NamedTensor& tensor, std::initializer_list<std::string_view> names);

// Swaps the last two axes of a view; nothing with fewer.
void swap_last_axes(Tensor& tensor);
// Returns a row-major copy with the last two axes swapped.
Tensor with_axes_swapped(Tensor tensor, const std::string& name);

// Can numbers_of() read the type?
bool holds_numbers(DType dtype);
// Returns the elements row-major; NaN for types other than floats, float8 without negative zero, and signed
// or 8-bit integers.
std::vector<double> numbers_of(const Tensor& tensor);

}  // namespace qcts
