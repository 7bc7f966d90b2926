// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace qcts {

// Sorts items by name, in the order of std::string_view; name_of returns the name of an item.
//
// The names of a model's tensors share their first word, so a plain sort compares most of each name, far away
// in memory. This one compares the eight bytes after the common prefix first, which are next to each other.
template <class Item, class NameOf>
void sort_by_name(std::vector<Item>& items, NameOf name_of) {
  if (items.empty()) return;
  const std::string_view first = name_of(items.front());
  size_t common = first.size();
  for (const Item& item : items) {
    const std::string_view name = name_of(item).substr(0, common);
    common = static_cast<size_t>(std::ranges::mismatch(name, first).in1 - name.begin());
  }
  struct Keyed {
    uint64_t key;  // big-endian; missing bytes are 0 and sort before any other
    Item item;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Item& item : items) {
    const std::string_view name = name_of(item).substr(common);
    uint64_t key = 0;
    for (size_t i = 0; i < 8; ++i)
      key = key << 8 | (i < name.size() ? static_cast<unsigned char>(name[i]) : 0);
    keyed.push_back({key, item});
  }
  std::ranges::sort(keyed, [&](const Keyed& a, const Keyed& b) {
    return a.key != b.key ? a.key < b.key : name_of(a.item) < name_of(b.item);
  });
  for (size_t i = 0; i < items.size(); ++i) items[i] = keyed[i].item;
}

}  // namespace qcts
