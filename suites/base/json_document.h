// SPDX-License-Identifier: BSD-3-Clause
// The JSON that commands print: one object, which begins with its name and the version of its schema.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace qcts {

// Returns {"qcts": NAME, "schema": VERSION} followed by the members of `body`. The version changes when a
// member is removed or gets another meaning.
nlohmann::ordered_json json_document(std::string_view name, const nlohmann::ordered_json& body,
                                     int version = 1);

// Prints it on standard output, indented, with characters that steer a terminal escaped.
void print_json(std::string_view name, const nlohmann::ordered_json& body, int version = 1);

}  // namespace qcts
