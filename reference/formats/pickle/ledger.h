// SPDX-License-Identifier: BSD-3-Clause
// What reading a pickle has cost so far, and the keys of its open dicts: a few bytes of a pickle can ask for
// much memory (a node an opcode) and much time (a long memoised text used as a key again and again). Included
// by the pickle reader only.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "reference/formats/pickle/keys.h"
#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {

// Bytes of the heap, as the reader accounts for them: a node; a slot of an
// array that grows by half, with its share of the array; a string that is not held inside its node.
inline constexpr uint64_t kNodeBytes = sizeof(Node), kSlotBytes = 16;
inline uint64_t string_bytes(uint64_t length) { return length > 7 ? length + 16 : 0; }

class Ledger {
 public:
  explicit Ledger(const Limits& limits) : limits_(limits) {}

  // Of the opcode that is read: how many before it, how many bytes of the pickle, and the offset that a
  // refusal names.
  void begin(uint64_t ops, uint64_t bytes, uint64_t offset) {
    ops_ = ops;
    bytes_ = bytes;
    offset_ = offset;
  }
  // Memory that stays. Refuses LimitExceeded beyond Limits::pickle_heap_bytes.
  void account(uint64_t bytes) {
    heap_ += bytes;
    if (heap_ > limits_.pickle_heap_bytes) check_heap();
  }
  // Text that is compared or hashed. Refuses LimitExceeded when it is out of proportion to what was read of
  // the pickle.
  void charge(uint64_t bytes);
  // Whether `target` has no such key yet; the caller adds it. Refuses PickleType for what is no key.
  bool is_new_key(const Ref& target, const Ref& key);
  uint64_t heap_bytes() const { return heap_; }
  // `node` gets no more keys.
  void close(const Ref& node) {
    if (node->pairs.size() > kFewKeys) forget(node);
  }

 private:
  // Few keys are compared one by one: most dicts are small, and a set for each costs more than they do.
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
  std::unordered_map<const Node*, KeySet> keys_;  // of dicts with many
  const Node* last_ = nullptr;                    // asked about last, and its keys
  KeySet* last_keys_ = nullptr;
};

}  // namespace qcts::pickle
