// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/names/name_rows.h"

#include <algorithm>

namespace qcts {
namespace {

constexpr NameRow kNameRows[] = {
#include "reference/dialects/names/transformers_names.inc"
};

}  // namespace

std::span<const NameRow> name_rows() { return kNameRows; }

nlohmann::ordered_json name_row(std::string_view kind, std::string_view name) {
  const std::string key = std::string(kind) + std::string(name);
  const auto found = std::ranges::lower_bound(kNameRows, key, {}, &NameRow::key);
  if (found == std::end(kNameRows) || found->key != key) return nullptr;
  return nlohmann::ordered_json::parse(found->json);
}

}  // namespace qcts
