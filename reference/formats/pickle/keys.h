// SPDX-License-Identifier: BSD-3-Clause
// The set of keys of a dict under construction. Only the pickle reader's ledger includes this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {

// Returns true if two values are the same key in Python. key_text must accept both.
bool is_same_key(const Ref& a, const Ref& b);

class KeySet {
 public:
  // Upper bound of a key's heap bytes, which is reached while the table grows.
  // The old table, which is three quarters full, and the new table then exist together.
  static constexpr uint64_t kBytesPerKey = 64;

  bool empty() const { return slots_.empty(); }
  // Returns false if an equal key is present.
  bool insert(const Ref& key);

 private:
  // A file can choose keys that collide in any hash table.
  // Keys that do not fit into a run of this length go into a tree.
  static constexpr size_t kLongestRun = 128;

  struct Entry {
    uint64_t hash = 0;
    Ref key;
    bool operator==(const Entry& other) const { return hash == other.hash && is_same_key(key, other.key); }
    bool operator<(const Entry& other) const;
  };

  static uint64_t hash_of(const Ref& key);
  // Returns the entry or its free slot, or nullptr if the run is full.
  Entry* find(const Entry& entry);
  void grow();

  std::vector<Entry> slots_;
  std::set<Entry> tree_;
  size_t count_ = 0;  // number of keys in slots_
};

}  // namespace qcts::pickle
