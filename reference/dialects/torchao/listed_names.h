// SPDX-License-Identifier: BSD-3-Clause
// Matches the names that torchao's metadata lists, which are those in memory, with the entries of the files,
// whose names are those on disk.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "reference/dialects/dialects.h"
#include "reference/dialects/names/model_names.h"
#include "reference/dialects/torchao/entry_index.h"

namespace qcts {

// An entry that is a tensor in memory, or becomes a part of one.
struct StoredEntry {
  const SafetensorsEntry* entry = nullptr;
  const NameTransform* conversion = nullptr;  // nullptr: the entry is the tensor
  size_t source = 0;                          // number of the conversion's source
};

// Returns the prefix of the names of a tensor's parts: "NAME:", or "MODULE._PARAM_" of a name MODULE.PARAM.
// Returns an empty string for a name without a module.
std::string part_prefix(std::string_view name, SafetensorsKeys keys);

class ListedNames {
 public:
  // `names` are the keys of the state dict in memory. All arguments must live as long as the result.
  ListedNames(const std::set<std::string_view>& names, const EntryIndex& entries,
              std::span<const SafetensorsEntry* const> order, SafetensorsKeys keys, ReadBudget& budget);

  // Finds the entries of each name, by config.json's architecture or, if it has none that is known, by the
  // renames of the architecture that explains most of the entries, and then by the ends of the names. Adds a
  // note if the names on disk were not explained by config.json.
  void match(const nlohmann::ordered_json& config, std::vector<std::string>& notes);

  // Returns the entries of a key in memory: a plain tensor's name, or its prefix and a part's name.
  std::vector<StoredEntry> find(const std::string& key) const;
  // Returns true if any entry belongs to the tensor.
  bool is_stored(std::string_view name) const;
  // Returns why the entries of a conversion do not make the tensor; empty if they do.
  std::string what_is_missing(std::span<const StoredEntry> parts, const std::string& key) const;
  // Returns the name on disk of the tensor that an entry is a part of.
  std::string name_on_disk(const std::string& entry, std::string_view part) const;

 private:
  using Found = std::map<std::string, std::vector<StoredEntry>, std::less<>>;
  // Returns the listed name that an entry belongs to; empty if none.
  std::string_view owner_of(std::string_view key) const;
  std::set<std::string, std::less<>> owners_in(const Found& found) const;
  Found mapped(ModelNames& model);
  size_t explained(const Found& found) const;
  std::pair<std::string, std::string> stem_of(const std::string& entry) const;
  void count_experts(const nlohmann::ordered_json& config);
  void match_by_class(std::vector<std::string>& notes);
  void match_by_ending(std::vector<std::string>& notes);

  const std::set<std::string_view>& names_;
  std::unordered_set<std::string_view> hashed_;  // names_
  const EntryIndex& entries_;
  std::span<const SafetensorsEntry* const> order_;
  std::vector<const SafetensorsEntry*> sorted_;  // as transformers sorts them, once they were mapped
  SafetensorsKeys keys_;
  ReadBudget& budget_;
  std::vector<ModelNames> models_;             // own the conversions
  Found found_;                                // by key in memory
  std::set<std::string, std::less<>> stored_;  // names with an entry
  std::map<std::string, size_t> experts_;      // by module: their number
};

}  // namespace qcts
