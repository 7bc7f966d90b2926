// SPDX-License-Identifier: BSD-3-Clause
// JSON files of a model's folder, in the form in which transformers writes them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace qcts::cli {

// Returns the text as json.dumps(indent=2) with a line feed at the end.
std::string json_file(const nlohmann::ordered_json& value);
std::span<const std::byte> bytes_of_text(const std::string& text);

// Returns config.json, or one of its parts, with this quantization_config.
// It goes to its place if the keys are sorted, as transformers sorts them, or else to the end.
nlohmann::ordered_json with_quantization(const nlohmann::ordered_json& config,
                                         const nlohmann::json& quantization);

}  // namespace qcts::cli
