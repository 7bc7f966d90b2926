// SPDX-License-Identifier: BSD-3-Clause
// The keys of one open dict. Included by the pickle reader's ledger only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {

// Whether two values are one key in Python; neither is refused by key_text.
bool is_same_key(const Ref& a, const Ref& b);

class KeySet {
 public:
  // Heap that a key takes at most: its slot at three quarters of load, while the table it moves from is still
  // there.
  static constexpr uint64_t kBytesPerKey = 64;

  bool empty() const { return slots_.empty(); }
  // False when an equal key is there already.
  bool insert(const Ref& key);

 private:
  // A file can choose its keys so that any table holds them in one long run: what does not fit into a short
  // one goes into a tree.
  static constexpr size_t kLongestRun = 128;

  struct Entry {
    uint64_t hash = 0;
    Ref key;
    bool operator==(const Entry& other) const { return hash == other.hash && is_same_key(key, other.key); }
    bool operator<(const Entry& other) const;
  };

  static uint64_t hash_of(const Ref& key);
  // The entry, or the place for it; nullptr where its run is full.
  Entry* find(const Entry& entry);
  void grow();

  std::vector<Entry> slots_;
  std::set<Entry> tree_;
  size_t count_ = 0;  // in the slots
};

}  // namespace qcts::pickle
