// SPDX-License-Identifier: BSD-3-Clause
// The JSON that commands print: one object that begins with its name and the version of its schema.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace qcts {

// Returns {"qcts": NAME, "schema": VERSION} followed by the members of `body`.
// The version changes if a member is removed or gets another meaning.
nlohmann::ordered_json json_document(std::string_view name, const nlohmann::ordered_json& body,
                                     int version = 1);

// Prints the document on standard output, indented. Escapes characters that control a terminal.
void print_json(std::string_view name, const nlohmann::ordered_json& body, int version = 1);

}  // namespace qcts
