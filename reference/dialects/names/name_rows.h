// SPDX-License-Identifier: BSD-3-Clause
// The data of transformers_names.inc, which scripts/transformers_names.py writes and explains.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace qcts {

struct NameRow {
  std::string_view key, json;
};

std::span<const NameRow> name_rows();  // sorted by key
// Returns null if there is no row of the key `table` and `name`.
nlohmann::ordered_json name_row(std::string_view table, std::string_view name);

}  // namespace qcts
