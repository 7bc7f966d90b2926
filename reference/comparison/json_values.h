// SPDX-License-Identifier: BSD-3-Clause
// Compares JSON values of attributes and of the files next to a folder's tensors.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "reference/comparison/findings.h"

namespace qcts {

// The values 1, 1.0 and true differ from each other.
// A different order of an object's keys counts as a different spelling only.
void compare_json(const std::string& path, const nlohmann::ordered_json& a, const nlohmann::ordered_json& b,
                  ContentFindings& out);
// Compares two texts that differ. If both are JSON objects or arrays, their values are compared.
// Equal values then count as a different spelling. Otherwise the texts themselves differ.
void compare_json_texts(const std::string& path, const std::string& a, const std::string& b,
                        ContentFindings& out);

}  // namespace qcts
