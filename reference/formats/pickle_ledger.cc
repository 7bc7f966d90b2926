#include "reference/formats/pickle_ledger.h"

#include <algorithm>
#include <functional>
#include <string>

#include "reference/formats/pickle_calls.h"

namespace qcts::pickle {
namespace {

constexpr uint64_t kKeyBytes = 64;  // an entry of a set of keys
constexpr uint64_t kFreeBytes = 64u << 20;
constexpr uint64_t kTimesPickle =
    64;  // names that are used again cost their length, and a memo index two bytes

}  // namespace

void Ledger::refuse_heap() const {
  refuse(RefusalClass::LimitExceeded,
         "data.pkl: its values take " + std::to_string(heap_) + " bytes of memory", offset_);
}

void Ledger::charge(uint64_t bytes) {
  charged_ += bytes;
  if (charged_ > kFreeBytes + kTimesPickle * bytes_)
    refuse(RefusalClass::LimitExceeded, "data.pkl: its texts are used again and again", offset_);
}

bool Ledger::is_new_key(const Ref& target, const Ref& key) {
  charge(key->text.size() * (1 + std::min(target->pairs.size(), kFewKeys)));
  if (target->pairs.size() < kFewKeys) {
    if (key->kind != Kind::string) key_text(key, offset_);
    return std::ranges::none_of(target->pairs,
                                [&](const auto& pair) { return is_same_key(pair.first, key); });
  }
  auto& keys = keys_of(target.get());
  if (keys.empty())
    for (const auto& [other, value] : target->pairs) keys.insert({hash_of(other), other});
  account(kKeyBytes);
  return keys.insert({hash_of(key), key}).second;
}

std::set<Ledger::Key>& Ledger::keys_of(const Node* node) {
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

// Of what key_text gives but for its tag.
uint64_t Ledger::hash_of(const Ref& key) const {
  if (key->kind == Kind::string) return std::hash<std::string_view>()(key->text);
  return std::hash<std::string>()(key_text(key, offset_));
}

bool Ledger::Key::is_before(const Key& other) const {
  return key_text(key, 0) < key_text(other.key, 0);  // both are keys already: neither is refused
}

bool Ledger::is_same_key(const Ref& a, const Ref& b) const {
  if (a == b) return true;
  if ((a->kind == Kind::string) != (b->kind == Kind::string)) return false;
  if (a->kind == Kind::string) return a->text == b->text;
  return key_text(a, offset_) == key_text(b, offset_);
}

}  // namespace qcts::pickle
