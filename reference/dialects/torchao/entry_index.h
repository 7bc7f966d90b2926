// SPDX-License-Identifier: BSD-3-Clause
// Indexes the entries of safetensors files and their metadata by name.
// Also records which entries a tensor uses.
// The tables are sorted, because a file can choose names that collide in any hash table.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/dialects.h"
#include "reference/formats/safetensors/safetensors.h"

namespace qcts {

class EntryIndex {
 public:
  explicit EntryIndex(std::span<const SafetensorsEntry* const> entries)
      : entries_(entries.begin(), entries.end()), claimed_(entries.size()) {
    std::ranges::sort(entries_, {}, name_of);
  }

  const SafetensorsEntry* find(std::string_view name) const {
    const size_t at = place_of(name);
    return at < entries_.size() && name_of(entries_[at]) == name ? entries_[at] : nullptr;
  }
  // Returns the entries whose names begin with `prefix`, sorted by name.
  std::span<const SafetensorsEntry* const> with_prefix(std::string_view prefix) const {
    const auto begin = entries_.begin() + static_cast<ptrdiff_t>(place_of(prefix));
    const auto end = std::partition_point(begin, entries_.end(), [&](const SafetensorsEntry* entry) {
      return entry->name.starts_with(prefix);
    });
    return {begin, end};
  }

  bool is_claimed(const SafetensorsEntry& entry) const { return claimed_[place_of(entry.name)]; }
  void claim(const SafetensorsEntry& entry) { claimed_[place_of(entry.name)] = true; }

 private:
  static std::string_view name_of(const SafetensorsEntry* entry) { return entry->name; }
  size_t place_of(std::string_view name) const {
    return static_cast<size_t>(std::ranges::lower_bound(entries_, name, {}, name_of) - entries_.begin());
  }

  std::vector<const SafetensorsEntry*> entries_;
  std::vector<bool> claimed_;
};

// The common base of the two readers whose tensors are described by metadata.
// The tables of this class are charged to the view's budget.
class DescribedEntries {
 protected:
  static constexpr uint64_t kPlaceBytes = 72;  // bytes of one place in a sorted table

  explicit DescribedEntries(SafetensorsView& view)
      : order_(view.entries), entries_(view.entries), budget_(view.budget) {
    budget_.take_bytes((sizeof(void*) + 1) * order_.size() + kPlaceBytes * view.metadata.size());
    for (const auto& [key, value] : view.metadata) metadata_.emplace(key, &value);
  }

  std::span<const SafetensorsEntry* const> order_;  // in the order of the files
  EntryIndex entries_;
  std::map<std::string_view, const std::string*> metadata_;
  ReadBudget& budget_;
};

}  // namespace qcts
