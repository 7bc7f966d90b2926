// SPDX-License-Identifier: BSD-3-Clause
// Formats paths and values of an object graph for messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/formats/pickle/pickle.h"
#include "reference/formats/tensor.h"

namespace qcts {

// Returns a value as text: "3", "0.5", "\"adam\"", "list of 3", "MappingType(1)", "torch.float16".
std::string value_text(const pickle::Ref& node);
// Formats two values that differ. Each text begins shortly before the first difference.
std::pair<std::string, std::string> value_texts(const pickle::Ref& a, const pickle::Ref& b);
// Quotes and escapes a string, and leaves out the middle of a long one.
std::string in_quotes(std::string_view text);
std::pair<std::string, std::string> in_quotes_both(std::string_view a, std::string_view b);
std::string shape_words(const std::vector<int64_t>& shape);  // "[2,3]"

// Serializes a value and everything below it.
// Two results are equal if and only if the kinds and the bits are. A hostile value is truncated after 64 KiB.
std::string identity_text(const pickle::Ref& node);

// Returns the step that a key adds to the path of its mapping: "lr" or ".lr", "[0]", "[(1, 2)]".
std::string key_step(const pickle::Ref& key, bool first);

// Returns an element as text: "0x3c21 (0.00982666)" for a float, "0x3c21" for other types.
std::string element_words(DType dtype, std::span<const std::byte> elements, uint64_t index);

}  // namespace qcts
