#include "reference/formats/pickle_ledger.h"

#include <algorithm>

#include "reference/formats/pickle_calls.h"

namespace qcts::pickle {
namespace {

// Few keys are compared one by one: most dicts are small, and a set for each costs more than they do.
constexpr size_t kFewKeys = 8;
constexpr uint64_t kKeyBytes = 96;  // an entry of a set of strings, with its share of the buckets
constexpr uint64_t kFreeBytes = 64u << 20;
constexpr uint64_t kTimesPickle =
    64;  // names that are used again cost their length, and a memo index two bytes

}  // namespace

void Ledger::account(uint64_t bytes) {
  heap_ += bytes;
  if (heap_ <= limits_.pickle_heap_bytes) return;
  if (heap_ - limits_.pickle_heap_bytes > limits_.pickle_heap_bytes_per_op * ops_ + bytes_)
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
  auto& keys = keys_[target.get()];
  if (keys.empty())
    for (const auto& [other, value] : target->pairs) keys.insert(key_text(other, offset_));
  account(kKeyBytes + string_bytes(key->text.size()));
  return keys.insert(key_text(key, offset_)).second;
}

void Ledger::close(const Ref& node) {
  if (node->pairs.size() > kFewKeys) keys_.erase(node.get());
}

bool Ledger::is_same_key(const Ref& a, const Ref& b) const {
  if (a == b) return true;
  if ((a->kind == Kind::string) != (b->kind == Kind::string)) return false;
  if (a->kind == Kind::string) return a->text == b->text;
  return key_text(a, offset_) == key_text(b, offset_);
}

}  // namespace qcts::pickle
