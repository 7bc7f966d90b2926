// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/ledger.h"

#include <algorithm>
#include <string>

#include "reference/formats/pickle/calls.h"

namespace qcts::pickle {
namespace {

constexpr uint64_t kFreeBytes = 64u << 20;
constexpr uint64_t kTimesPickle =
    64;  // reusing a name costs its length, while the file spends two bytes on a memo index

}  // namespace

void Ledger::refuse_heap() const {
  refuse(RefusalClass::LimitExceeded,
         "data.pkl: its values take " + std::to_string(heap_) + " bytes of memory", offset_);
}

void Ledger::charge(uint64_t bytes) {
  charged_ += bytes;
  if (charged_ > kFreeBytes + kTimesPickle * bytes_)
    refuse(RefusalClass::LimitExceeded, "data.pkl: its strings are reused too often", offset_);
}

bool Ledger::is_new_key(const Ref& target, const Ref& key) {
  charge(key->text.size() * (1 + std::min(target->pairs.size(), kFewKeys)));
  // Each later comparison makes the texts of both keys again.
  if (key->kind != Kind::string) charge(key_text(key, offset_).size() * 2 * (1 + kFewKeys));
  if (target->pairs.size() < kFewKeys) {
    return std::ranges::none_of(target->pairs,
                                [&](const auto& pair) { return is_same_key(pair.first, key); });
  }
  auto& keys = keys_of(target.get());
  if (keys.empty())
    for (const auto& [other, value] : target->pairs) keys.insert(other);
  account(KeySet::kBytesPerKey);
  return keys.insert(key);
}

KeySet& Ledger::keys_of(const Node* node) {
  if (node != last_) {
    last_keys_ = &keys_[node];
    last_ = node;
  }
  return *last_keys_;
}

void Ledger::forget(const Ref& node) {
  if (node.get() == last_) last_ = nullptr;
  keys_.erase(node.get());
}

}  // namespace qcts::pickle
