// SPDX-License-Identifier: BSD-3-Clause
// Values of JSON, which attributes and the files beside a folder's tensors hold.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "reference/comparison/findings.h"

namespace qcts {

// 1, 1.0 and true differ; the order of an object's keys is spelling.
void compare_json(const std::string& path, const nlohmann::ordered_json& a, const nlohmann::ordered_json& b,
                  ContentFindings& out);
// Two texts that differ: their values where both are JSON objects or arrays, and then a difference of the
// texts alone is spelling; the texts themselves otherwise.
void compare_json_texts(const std::string& path, const std::string& a, const std::string& b,
                        ContentFindings& out);

}  // namespace qcts
