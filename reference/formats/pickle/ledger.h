// SPDX-License-Identifier: BSD-3-Clause
// Tracks the memory and time that reading a pickle has cost, and the keys of open dicts.
// A few bytes can demand much memory: a node per opcode.
// A few bytes can demand much time: a long memoised string that is a key again and again.
// Only the pickle reader includes this header.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "reference/formats/pickle/keys.h"
#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {

// Heap bytes by the reader's account: of a node, of a slot in an array, of a string outside its node.
// The array grows by half, and a slot includes its share of the array's header.
inline constexpr uint64_t kNodeBytes = sizeof(Node), kSlotBytes = 16;
inline uint64_t string_bytes(uint64_t length) { return length > 7 ? length + 16 : 0; }

class Ledger {
 public:
  explicit Ledger(const Limits& limits) : limits_(limits) {}

  // Starts an opcode. `ops` is the number of opcodes before it.
  // `bytes` is the number of bytes of the pickle read so far. A refusal names `offset`.
  void begin(uint64_t ops, uint64_t bytes, uint64_t offset) {
    ops_ = ops;
    bytes_ = bytes;
    offset_ = offset;
  }
  // Charges memory that is kept. Throws Refused (LimitExceeded) beyond Limits::pickle_heap_bytes.
  void account(uint64_t bytes) {
    heap_ += bytes;
    if (heap_ > limits_.pickle_heap_bytes) check_heap();
  }
  // Charges text that is compared or hashed.
  // Throws Refused (LimitExceeded) if the total is out of proportion to the bytes read.
  void charge(uint64_t bytes);
  // Returns true if `key` is new to `target`. The caller then adds it.
  // Throws Refused (PickleType) for a value that cannot be a key.
  bool is_new_key(const Ref& target, const Ref& key);
  uint64_t heap_bytes() const { return heap_; }
  // Forgets the keys of `node`, which is complete.
  void close(const Ref& node) {
    if (node->pairs.size() > kFewKeys) forget(node);
  }

 private:
  // Up to this number, keys are compared one by one.
  // Most dicts are small, and a set for each would cost more.
  static constexpr size_t kFewKeys = 8;

  [[noreturn]] void refuse_heap() const;
  void check_heap() const {
    if (heap_ - limits_.pickle_heap_bytes > limits_.pickle_heap_bytes_per_op * ops_ + bytes_) refuse_heap();
  }
  KeySet& keys_of(const Node* node);
  void forget(const Ref& node);

  const Limits& limits_;
  uint64_t ops_ = 0, bytes_ = 0, offset_ = 0;
  uint64_t heap_ = 0, charged_ = 0;
  std::unordered_map<const Node*, KeySet> keys_;  // keys of dicts with more than kFewKeys
  const Node* last_ = nullptr;                    // the dict that was looked up last, and its keys
  KeySet* last_keys_ = nullptr;
};

}  // namespace qcts::pickle
