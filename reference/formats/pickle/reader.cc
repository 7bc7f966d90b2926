// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "reference/formats/io/utf8.h"
#include "reference/formats/pickle/calls.h"
#include "reference/formats/pickle/globals.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/pickle/ledger.h"
#include "reference/formats/pickle/numpy_arrays.h"
#include "reference/formats/pickle/opcodes.h"
#include "reference/formats/pickle/pickle.h"
#include "reference/formats/pickle/pool.h"
#include "reference/formats/pickle/source.h"
#include "reference/formats/pickle/stack.h"

namespace qcts::pickle {
namespace {

constexpr size_t kSharedIntegers = 4096;
constexpr uint64_t kRoleBytes = 48;  // an entry of a NodeMap of roles

class Reader {
 public:
  Reader(std::span<const std::byte> data, const ReadOptions& options)
      : source_(data, options.limits, options.base_offset),
        options_(options),
        depth_limit_(std::min(options.limits.pickle_depth, kMaxGraphDepth)),
        ledger_(options.limits),
        stack_(source_, options.limits) {
    allowed_.insert(options.allow.begin(), options.allow.end());
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Returns the value at STOP; `used` receives the bytes up to there.
  Ref run(uint64_t& used);

 private:
  bool step();  // false after STOP
  void step_container(uint8_t opcode);
  void step_scalar(uint8_t opcode);

  template <typename T>
  T take_le(const char* what) {
    return source_.take_le<T>(what);
  }
  std::string_view take_text(uint64_t count);

  void push(Ref value) { stack_.push(std::move(value)); }
  Ref make(Kind kind);
  Ref integer_of(int64_t value);
  std::optional<GlobalInfo> role_of_callable(const Ref& callable);
  void place(std::span<const Ref> children, Node& parent);
  void open(const Ref& target, std::span<Ref> values);
  void close_cycles(const Ref& target, std::span<Ref> values);

  void push_tuple(Refs items);
  void named_global();
  bool is_allowed(const std::string& module, const std::string& name) const;
  void push_persistent(Refs id);
  void long_integer();
  void set_items(const Ref& target, Refs flat);
  void append_items(const Ref& target, Refs values);

  [[noreturn]] void fail(RefusalClass cls, std::string_view what) const { source_.fail(cls, what); }
  [[noreturn]] void fail_depth() const;

  Source source_;
  const ReadOptions& options_;
  const uint64_t depth_limit_;
  Ledger ledger_;
  NodePool pool_;
  std::unordered_set<std::string> allowed_;
  uint64_t ops_ = 0;
  Stack stack_;
  bool device_arrays_ = false;  // a function was named whose first argument is a numpy array
  bool numpy_parts_ = false;    // a part of one was named, which the caller did not allow
  // Values without identity: picklers never memoise them, so one node serves for each value.
  std::unordered_map<int64_t, Ref> integers_;
  NodeMap<std::optional<GlobalInfo>> roles_;  // roles of callables
  Ref none_, true_, false_, empty_tuple_;
};

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

// Handles values, memo and globals.
void Reader::step_scalar(uint8_t opcode) {
  const auto push_shared = [&](Ref& shared, Kind kind) {
    if (shared == nullptr) shared = make(kind);
    push(shared);
  };
  switch (opcode) {
    case 'N':
      return push_shared(none_, Kind::none);
    case 0x88:
      push_shared(true_, Kind::boolean);
      true_->boolean = true;
      return;
    case 0x89:
      return push_shared(false_, Kind::boolean);
    case ')':
      return push_shared(empty_tuple_, Kind::tuple);
    case 'K':
      return push(integer_of(take_le<uint8_t>("BININT1")));
    case 'M':
      return push(integer_of(take_le<uint16_t>("BININT2")));
    case 'J':
      return push(integer_of(static_cast<int32_t>(take_le<uint32_t>("BININT"))));
    case 0x8a:
      return long_integer();
    case 'G': {
      uint64_t bits = 0;
      for (std::byte byte : source_.take(8, "BINFLOAT")) bits = bits << 8 | std::to_integer<uint64_t>(byte);
      Ref node = make(Kind::real);
      std::memcpy(&node->real, &bits, sizeof bits);
      return push(std::move(node));
    }
    case 'X':
    case 'U': {
      const uint64_t count =
          opcode == 'X' ? take_le<uint32_t>("BINUNICODE") : take_le<uint8_t>("SHORT_BINSTRING");
      const std::string_view text = take_text(count);
      if (!is_utf8(text, true)) fail(RefusalClass::PickleType, "a string is not UTF-8");
      Ref node = make(Kind::string);
      node->text = text;
      return push(std::move(node));
    }
    case 'c':
      return named_global();
    case 'q':
      return stack_.put(take_le<uint8_t>("BINPUT"), ops_);
    case 'r':
      return stack_.put(take_le<uint32_t>("LONG_BINPUT"), ops_);
    case 'h':
      return push(stack_.get(take_le<uint8_t>("BINGET")));
    case 'j':
      return push(stack_.get(take_le<uint32_t>("LONG_BINGET")));
    default:
      fail(RefusalClass::PickleOpcode, opcode_words(opcode) + " is not on the allow-list");
  }
}

// Handles containers and objects.
void Reader::step_container(uint8_t opcode) {
  switch (opcode) {
    case '(':
      return stack_.mark();
    case ']':
      return push(make(Kind::list));
    case '}':
      return push(make(Kind::dict));
    case 0x8f:
      return push(make(Kind::set));
    case 0x85:
      return push_tuple(stack_.take(1));
    case 0x86:
      return push_tuple(stack_.take(2));
    case 0x87:
      return push_tuple(stack_.take(3));
    case 't':
      return push_tuple(stack_.pop_to_mark());
    case 'a': {
      Refs value = stack_.take(1);
      return append_items(stack_.top(), std::move(value));
    }
    case 'e': {
      Refs values = stack_.pop_to_mark();
      return append_items(stack_.top(), std::move(values));
    }
    case 's': {
      Refs item = stack_.take(2);
      return set_items(stack_.top(), std::move(item));
    }
    case 'u': {
      Refs flat = stack_.pop_to_mark();
      return set_items(stack_.top(), std::move(flat));
    }
    case 'R':
    case 0x81: {
      Refs parts = stack_.take(2);
      const Ref &callable = parts[0], &arguments = parts[1];
      for (const Ref& argument : arguments->items)
        ledger_.charge(argument->text.size() + argument->items.size());
      if (opcode == 'R')
        check_reduce(callable, role_of_callable(callable), arguments, source_.opcode_at());
      else
        check_new_object(callable, arguments, source_.opcode_at());
      Ref node = make(opcode == 'R' ? Kind::call : Kind::new_object);
      place(parts, *node);
      node->items = std::move(parts);
      return push(std::move(node));
    }
    case 'b': {
      Ref state = stack_.pop();
      const Ref& target = stack_.top();
      check_build(target, state, source_.opcode_at());
      open(target, std::span(&state, 1));
      place(std::span(&state, 1), *target);
      target->state = std::move(state);
      return;
    }
    case 'Q':
      return push_persistent(stack_.take(1));
    default:
      return step_scalar(opcode);
  }
}

bool Reader::step() {
  const uint8_t opcode = source_.begin_opcode();
  if (++ops_ > options_.limits.pickle_ops) fail(RefusalClass::LimitExceeded, "too many opcodes");
  ledger_.begin(ops_, source_.at(), source_.opcode_at());
  if (opcode == '.') return false;
  if (opcode == 0x80) {
    const int version = take_le<uint8_t>("PROTO");
    if (version != 2 && version != 3)
      fail(RefusalClass::Version,
           "pickle protocol " + std::to_string(version) +
               ", which torch.load(weights_only=True) refuses too: torch.save writes protocol 2 by default");
    return true;
  }
  if (ops_ == 1) fail(RefusalClass::Version, "the pickle does not begin with PROTO 2");
  step_container(opcode);
  return true;
}

Ref Reader::run(uint64_t& used) {
  while (step()) {
  }
  Ref root = stack_.pop();
  if (!stack_.empty()) fail(RefusalClass::PickleStack, "values are left over at STOP");
  if (numpy_parts_) check_numpy_parts(root, allowed_);
  used = source_.at();
  if (options_.cost != nullptr) {
    options_.cost->opcodes += ops_;
    options_.cost->pickle_bytes += used;
    options_.cost->heap_bytes += ledger_.heap_bytes();
  }
  return root;
}

}  // namespace

Ref read_first(std::span<const std::byte> data, uint64_t& used, const ReadOptions& options) {
  return Reader(data, options).run(used);
}

}  // namespace qcts::pickle
