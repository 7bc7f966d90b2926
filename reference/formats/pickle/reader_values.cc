// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reference/formats/io/utf8.h"
#include "reference/formats/pickle/calls.h"
#include "reference/formats/pickle/numpy_arrays.h"
#include "reference/formats/pickle/opcodes.h"

namespace qcts::pickle {
namespace {

constexpr size_t kSharedIntegers = 4096;
constexpr uint64_t kRoleBytes = 48;  // an entry of a NodeMap of roles

}  // namespace

// Limits::pickle_string_bytes is not a limit on the bytes of an array, which are written as a text to encode.
std::string_view Reader::take_text(uint64_t count) {
  const bool array = device_arrays_ && stack_.holds(1) && is_global(stack_.top(), "_codecs", "encode");
  const std::string_view text = array ? as_text(source_.take(count, "a string")) : source_.take_text(count);
  ledger_.account(string_bytes(count));
  return text;
}

Ref Reader::make(Kind kind) {
  Ref node = pool_.make(kind);
  node->offset = source_.opcode_at();
  ledger_.account(kNodeBytes);
  return node;
}

Ref Reader::integer_of(int64_t value) {
  const auto known = integers_.find(value);
  if (known != integers_.end()) return known->second;
  Ref node = make(Kind::integer);
  node->integer = value;
  if (integers_.size() < kSharedIntegers) integers_.emplace(value, node);
  return node;
}

std::optional<GlobalInfo> Reader::role_of_callable(const Ref& callable) {
  if (callable->kind != Kind::global) return std::nullopt;
  const auto [role, fresh] = roles_.insert(callable.get());
  if (fresh) {
    ledger_.account(kRoleBytes);
    *role = role_of(callable);
  }
  return *role;
}

// Adds `children` to `parent` and freezes them. So no value can contain itself, and a value's height is final
// when another holds it.
void Reader::place(std::span<const Ref> children, Node& parent) {
  ledger_.account(kSlotBytes * children.size());
  unsigned height = parent.height;
  for (const Ref& child : children) {
    if (child.get() == &parent) fail(RefusalClass::PickleType, "a value contains itself");
    if (child->height + 1u >= depth_limit_) fail_depth();
    child->placed = 1;
    height = std::max(height, child->height + 1u);
    ledger_.close(child);
  }
  parent.height = height & 0x7fff;
}

void Reader::fail_depth() const {
  fail(RefusalClass::LimitExceeded, "values are nested deeper than " + std::to_string(depth_limit_));
}

// Lets `target` receive `values`. A value that others hold may only receive those others.
void Reader::open(const Ref& target, std::span<Ref> values) {
  if (options_.cycles && (target->placed || std::ranges::count(values, target) > 0))
    close_cycles(target, values);
  if (target->placed)
    fail(RefusalClass::PickleType, "a value is changed after another contains it, or contains itself");
}

// Puts Kind::enclosing in the place of each reference to `target` below `values`.
// No other value may hold `target`: its height would not be final there.
void Reader::close_cycles(const Ref& target, std::span<Ref> values) {
  uint64_t replaced = 0;
  NodeMap<bool> seen;
  const auto replace = [&](auto& self, Ref& place, int64_t levels) -> void {
    ledger_.charge(kNodeBytes);
    if (place == target) {
      Ref node = make(Kind::enclosing);
      node->integer = levels;
      node->offset = target->offset;
      place = std::move(node);
      ++replaced;
      return;
    }
    if (place->is_leaf() || !seen.insert(place.get()).second) return;
    for (Ref& item : place->items) self(self, item, levels + 1);
    for (auto& [key, value] : place->pairs) self(self, key, levels + 1), self(self, value, levels + 1);
    if (place->state != nullptr) self(self, place->state, levels + 1);
  };
  for (Ref& value : values) replace(replace, value, 1);
  ledger_.charge(stack_.places() * sizeof(Ref));
  if (replaced > 0 && target->own.references.load() == stack_.references_to(target)) target->placed = 0;
}

void Reader::push_tuple(Refs items) {
  Ref node = make(Kind::tuple);
  place(items, *node);
  node->items = std::move(items);
  push(std::move(node));
}

bool Reader::is_allowed(const std::string& module, const std::string& name) const {
  return !is_blocked_module(module) && allowed_.contains(module + "." + name);
}

void Reader::named_global() {
  const std::string module = source_.take_line();
  const std::string name = source_.take_line();
  const bool clean = module.find(' ') == std::string::npos && is_utf8(module) && is_utf8(name);
  const bool allowed = clean && is_allowed(module, name);
  const bool part = !allowed && device_arrays_ && clean && is_numpy_part(module, name);
  if (!allowed && !part && !(clean && known_global(module, name))) {
    source_.fail_globals(module, name, [&](const std::string& other_module, const std::string& other) {
      return is_allowed(other_module, other) || known_global(other_module, other).has_value();
    });
  }
  numpy_parts_ |= part;
  device_arrays_ |= takes_numpy_array(module, name);
  Ref node = make(Kind::global);
  node->text = module + " " + name;
  push(std::move(node));
}

void Reader::long_integer() {
  const auto bytes = source_.take(take_le<uint8_t>("LONG1"), "LONG1");
  if (bytes.size() <= 8) {
    uint64_t value = !bytes.empty() && std::to_integer<uint8_t>(bytes.back()) >= 0x80 ? ~uint64_t{0} : 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint8_t>(bytes[i]);
    return push(integer_of(static_cast<int64_t>(value)));
  }
  const Ref value = integer(bytes);
  if (value->kind == Kind::integer) return push(integer_of(value->integer));
  Ref node = make(Kind::big_integer);
  node->text = value->text;
  ledger_.account(string_bytes(node->text.size()));
  push(std::move(node));
}

void Reader::push_persistent(Refs id) {
  const Ref& parts = id[0];
  const bool names_class = options_.module_ids && parts->kind == Kind::tuple && parts->items.size() == 4 &&
                           parts->items[0]->kind == Kind::string && parts->items[0]->text == "module";
  const auto is_text = [](const Ref& part) { return part->kind == Kind::string || part->kind == Kind::none; };
  if (names_class &&
      (parts->items[1]->kind != Kind::global || !is_text(parts->items[2]) || !is_text(parts->items[3])))
    fail(RefusalClass::PickleType, "the id of a module is not its class, file and source");
  Ref node = make(names_class ? Kind::global : Kind::persistent);
  if (names_class) {
    node->text = parts->items[1]->text;
    ledger_.account(string_bytes(node->text.size()));
  }
  place(id, *node);
  node->items = std::move(id);
  push(std::move(node));
}

void Reader::set_items(const Ref& target, Refs flat) {
  check_set_item(target, source_.opcode_at());
  if (flat.size() % 2 != 0) fail(RefusalClass::PickleStack, "a key has no value");
  open(target, flat);
  for (size_t i = 0; i < flat.size(); i += 2) {
    if (!ledger_.is_new_key(target, flat[i])) fail(RefusalClass::PickleType, "a dict has a duplicate key");
    place(std::span(&flat[i], 2), *target);
    target->pairs.emplace_back(std::move(flat[i]), std::move(flat[i + 1]));
  }
}

void Reader::append_items(const Ref& target, Refs values) {
  check_append(target, source_.opcode_at());
  open(target, values);
  place(values, *target);
  if (target->items.empty()) {
    target->items = std::move(values);
    return;
  }
  for (Ref& value : values) target->items.push_back(std::move(value));
}

}  // namespace qcts::pickle
