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

Json attribute_at(const NamedTensor& tensor, std::string_view name);  // null if the attribute is absent
// Returns an integer attribute, or `otherwise` if it is absent or has another type.
int64_t integer_at(const NamedTensor& tensor, std::string_view name, int64_t otherwise = 0);
// Returns the integers of a list or of an encoded tuple. An item that is not an integer gives 0.
std::vector<int64_t> integers_of(const Json& value);

// Returns the first part that has one of the names, or nullptr.
const Tensor* first_part(const NamedTensor& tensor, std::initializer_list<std::string_view> names);

// Swaps the last two axes of a view. Does nothing if there are fewer.
void swap_last_axes(Tensor& tensor);
// Returns a row-major copy with the last two axes swapped.
Tensor with_axes_swapped(Tensor tensor, const std::string& name);

// Returns true if numbers_of() can read the type.
bool holds_numbers(DType dtype);
// Returns the elements in row-major order. The elements of any other type give NaN.
// Supports floats, float8 types without negative zero, signed integers and 8-bit integers.
std::vector<double> numbers_of(const Tensor& tensor);

}  // namespace qcts
