// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/keys.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "reference/formats/pickle/calls.h"

namespace qcts::pickle {

bool is_same_key(const Ref& a, const Ref& b) {
  if (a == b) return true;
  if ((a->kind == Kind::string) != (b->kind == Kind::string)) return false;
  if (a->kind == Kind::string) return a->text == b->text;
  return key_text(a, 0) == key_text(b, 0);
}

bool KeySet::Entry::operator<(const Entry& other) const {
  return hash != other.hash ? hash < other.hash : key_text(key, 0) < key_text(other.key, 0);
}

uint64_t KeySet::hash_of(const Ref& key) {
  // Hashes key_text(key); for strings, the text without key_text's tag.
  return key->kind == Kind::string ? std::hash<std::string_view>()(key->text)
                                   : std::hash<std::string>()(key_text(key, 0));
}

KeySet::Entry* KeySet::find(const Entry& entry) {
  const size_t mask = slots_.size() - 1;  // the size is a power of two
  for (size_t i = 0; i < kLongestRun; ++i) {
    Entry& slot = slots_[(entry.hash + i) & mask];
    if (slot.key == nullptr || slot == entry) return &slot;
  }
  return nullptr;
}

bool KeySet::insert(const Ref& key) {
  if (4 * (count_ + 1) > 3 * slots_.size()) grow();
  Entry entry{hash_of(key), key};
  if (!tree_.empty() && tree_.contains(entry)) return false;
  Entry* slot = find(entry);
  if (slot == nullptr) return tree_.insert(std::move(entry)).second;
  if (slot->key != nullptr) return false;
  *slot = std::move(entry);
  ++count_;
  return true;
}

void KeySet::grow() {
  std::vector<Entry> old(slots_.empty() ? 16 : 2 * slots_.size());
  old.swap(slots_);
  for (Entry& entry : old) {
    if (entry.key == nullptr) continue;
    if (Entry* slot = find(entry))
      *slot = std::move(entry);
    else
      tree_.insert(std::move(entry));
  }
}

}  // namespace qcts::pickle
