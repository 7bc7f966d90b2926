// SPDX-License-Identifier: BSD-3-Clause
// Paths and values of an object graph as a difference shows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/formats/pickle/pickle.h"
#include "reference/formats/tensor.h"

namespace qcts {

// "3", "0.5", "\"adam\"", "list of 3", "MappingType(1)", "torch.float16".
std::string value_text(const pickle::Ref& node);
// The same for two values that differ, each shown from shortly before the place where they part.
std::pair<std::string, std::string> value_texts(const pickle::Ref& a, const pickle::Ref& b);
// In quotes and escaped, the middle of a long one left out.
std::string in_quotes(std::string_view text);
std::pair<std::string, std::string> in_quotes_both(std::string_view a, std::string_view b);
std::string shape_words(const std::vector<int64_t>& shape);  // "[2,3]"

// A value with everything below it, told apart by kind and by every bit: equal exactly when the values are.
// Of a hostile one the first 64 KiB.
std::string identity_text(const pickle::Ref& node);

// What the path of a value under a key adds to that of its mapping: "lr" or ".lr", "[0]", "[(1, 2)]".
std::string key_step(const pickle::Ref& key, bool first);

// "0x3c21 (0.00982666)" for floats, "0x3c21" otherwise.
std::string element_words(DType dtype, std::span<const std::byte> elements, uint64_t index);

}  // namespace qcts
