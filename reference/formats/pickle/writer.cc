// SPDX-License-Identifier: BSD-3-Clause
// Writes what CPython 3.11's C pickler (Modules/_pickle.c) writes under protocol 2 for the same objects:
// strings, containers, globals and call results get memo indices in order; None, bools, numbers, empty tuples
// and persistent values get none.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {
namespace {

constexpr size_t kBatch = 1000;

class Writer {
 public:
  explicit Writer(const WriteOptions& options) : options_(options) {}

  std::vector<std::byte> run(const Ref& root) {
    op(0x80);
    op(2);
    save(root);
    op('.');
    return std::move(out_);
  }

 private:
  void op(uint8_t byte) { out_.push_back(static_cast<std::byte>(byte)); }
  void put();
  void get(uint32_t index);
  bool emit_from_memo(const Ref& node);
  void remember(const Ref& node);

  void save(const Ref& node);
  void save_new(const Ref& node);
  void save_integer(int64_t value);
  void save_long(std::string_view bytes);
  void save_real(double value);
  void save_text(const std::string& text);
  void save_bytes(const std::string& bytes);
  void save_named(std::string_view module, std::string_view name);
  void save_global(const std::string& text);
  void save_tuple(const Ref& node);
  void save_enclosing(const Ref& node);
  void save_object(const Ref& node);
  void save_list_items(const Refs& items);
  void save_dict_items(const Pairs& pairs);
  void append_iterated(std::span<const Ref> items);
  void set_iterated(const Pairs& pairs);

  const WriteOptions& options_;
  std::vector<std::byte> out_;
  std::unordered_map<const Node*, uint32_t> memo_;
  std::unordered_map<std::string, uint32_t> names_;   // equal names are one global, as in Python
  std::unordered_map<std::string, uint32_t> shared_;  // strings shared by value: WriteOptions::shared_strings
  uint32_t next_ = 0;
  uint64_t depth_ = 0;
  std::vector<const Node*> open_;  // the values that are being written, outermost first
};

void Writer::put() {
  if (next_ < 256) {
    op('q');
    op(static_cast<uint8_t>(next_));
  } else {
    op('r');
    append_le<uint32_t>(out_, next_);
  }
  ++next_;
}

void Writer::get(uint32_t index) {
  if (index < 256) {
    op('h');
    op(static_cast<uint8_t>(index));
  } else {
    op('j');
    append_le<uint32_t>(out_, index);
  }
}

void Writer::remember(const Ref& node) {
  memo_.emplace(node.get(), next_);
  put();
}

bool Writer::emit_from_memo(const Ref& node) {
  const auto found = memo_.find(node.get());
  if (found == memo_.end()) return false;
  get(found->second);
  return true;
}

void Writer::save(const Ref& node) {
  if (emit_from_memo(node)) return;
  if (++depth_ > kMaxGraphDepth)
    refuse(RefusalClass::LimitExceeded, "pickle: values are nested too deeply to be written");
  open_.push_back(node.get());
  save_new(node);
  open_.pop_back();
  --depth_;
}

void Writer::save_new(const Ref& node) {
  switch (node->kind) {
    case Kind::none:
      return op('N');
    case Kind::boolean:
      return op(node->boolean ? 0x88 : 0x89);
    case Kind::integer:
      return save_integer(node->integer);
    case Kind::big_integer:
      return save_long(node->text);
    case Kind::real:
      return save_real(node->real);
    case Kind::string:
      if (options_.shared_strings.contains(node.get())) {
        const auto [entry, fresh] = shared_.try_emplace(node->text, next_);
        if (!fresh) return get(entry->second);
      }
      save_text(node->text);
      return remember(node);
    case Kind::bytes:
      save_bytes(node->text);
      return remember(node);
    case Kind::tuple:
      return save_tuple(node);
    case Kind::list:
      op(']');
      remember(node);
      return save_list_items(node->items);
    case Kind::dict:
      op('}');
      remember(node);
      return save_dict_items(node->pairs);
    case Kind::set:
      op(0x8f);
      return remember(node);
    case Kind::global:
      if (node->items.empty() || !options_.module_ids) return save_global(node->text);
      save(node->items[0]);
      return op('Q');
    case Kind::call:
    case Kind::new_object:
      return save_object(node);
    case Kind::persistent:
      save(node->items.at(0));
      return op('Q');
    case Kind::enclosing:
      return save_enclosing(node);
  }
}

void Writer::save_integer(int64_t value) {
  if (value >= INT32_MIN && value <= INT32_MAX) {
    if (value >= 0 && value <= 0xff) {
      op('K');
      op(static_cast<uint8_t>(value));
    } else if (value >= 0 && value <= 0xffff) {
      op('M');
      append_le<uint16_t>(out_, static_cast<uint16_t>(value));
    } else {
      op('J');
      append_le<uint32_t>(out_, static_cast<uint32_t>(value));
    }
    return;
  }
  // Two's complement in as few bytes as keep the sign.
  size_t count = 8;
  while (count > 1 && value >> (8 * (count - 1) - 1) == (value < 0 ? -1 : 0)) --count;
  save_long(std::string_view(reinterpret_cast<const char*>(&value), count));
}

void Writer::save_long(std::string_view bytes) {
  op(0x8a);
  op(static_cast<uint8_t>(bytes.size()));
  append(out_, bytes);
}

void Writer::save_real(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  op('G');
  for (int shift = 56; shift >= 0; shift -= 8) op(static_cast<uint8_t>(bits >> shift));
}

void Writer::save_text(const std::string& text) {
  if (text.size() > UINT32_MAX) refuse(RefusalClass::LimitExceeded, "pickle: a string of 4 GiB or more");
  op('X');
  append_le<uint32_t>(out_, static_cast<uint32_t>(text.size()));
  append(out_, text);
}

// Protocol 2 has no opcode for bytes: they are the Latin-1 encoding of a string (_pickle.c, save_bytes).
void Writer::save_bytes(const std::string& bytes) {
  if (bytes.empty()) {
    save_named("__builtin__", "bytes");
    op(')');
    return op('R');
  }
  save_named("_codecs", "encode");
  std::string utf8;
  for (char c : bytes) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (byte < 0x80) {
      utf8 += c;
    } else {
      utf8 += static_cast<char>(0xc0 | (byte >> 6));
      utf8 += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  save_text(utf8);
  put();
  const auto [entry, fresh] = shared_.try_emplace("latin1", next_);
  if (fresh) {
    save_text("latin1");
    put();
  } else {
    get(entry->second);
  }
  op(0x86);
  put();
  op('R');
}

void Writer::save_named(std::string_view module, std::string_view name) {
  save_global(std::string(module) + " " + std::string(name));
}

void Writer::save_global(const std::string& text) {
  const auto [entry, fresh] = names_.try_emplace(text, next_);
  if (!fresh) return get(entry->second);
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find('\n') != std::string::npos) {
    refuse(RefusalClass::PickleGlobal, "pickle: a global without module and name cannot be written");
  }
  op('c');
  append(out_, std::string_view(text).substr(0, space));
  op('\n');
  append(out_, std::string_view(text).substr(space + 1));
  op('\n');
  put();
}

void Writer::save_tuple(const Ref& node) {
  const size_t count = node->items.size();
  if (count == 0) return op(')');
  if (count > 3) op('(');
  for (const Ref& item : node->items) save(item);
  op(count > 3 ? 't' : static_cast<uint8_t>(0x84 + count));
  remember(node);
}

void Writer::save_enclosing(const Ref& node) {
  const auto found = std::ranges::find_if(open_, [&](const Node* value) {
    return value->kind != Kind::enclosing && value->offset == node->offset && memo_.contains(value);
  });
  if (found == open_.end())
    refuse(RefusalClass::PickleType,
           "pickle: a value contains one that contained it, which cannot be written by itself");
  get(memo_.at(*found));
}

// _pickle.c, save_reduce: callable, arguments, the memo entry, then items through iterators, then the state.
void Writer::save_object(const Ref& node) {
  save(node->items.at(0));
  save(node->items.at(1));
  op(node->kind == Kind::call ? 'R' : 0x81);
  remember(node);
  append_iterated(node->appended());
  set_iterated(node->pairs);
  if (node->state != nullptr) {
    save(node->state);
    op('b');
  }
}

// batch_list_exact
void Writer::save_list_items(const Refs& items) {
  if (items.size() == 1) {
    save(items[0]);
    return op('a');
  }
  for (size_t first = 0; first < items.size(); first += kBatch) {
    op('(');
    for (size_t i = first; i < items.size() && i < first + kBatch; ++i) save(items[i]);
    op('e');
  }
}

// batch_dict_exact: a full batch is always followed by another one, which may be empty.
void Writer::save_dict_items(const Pairs& pairs) {
  if (pairs.empty()) return;
  if (pairs.size() == 1) {
    save(pairs[0].first);
    save(pairs[0].second);
    return op('s');
  }
  size_t at = 0, count = 0;
  do {
    op('(');
    for (count = 0; at < pairs.size() && count < kBatch; ++at, ++count) {
      save(pairs[at].first);
      save(pairs[at].second);
    }
    op('u');
  } while (count == kBatch);
}

// batch_list: a single last item has no MARK.
void Writer::append_iterated(std::span<const Ref> items) {
  for (size_t first = 0; first < items.size(); first += kBatch) {
    if (items.size() - first == 1) {
      save(items[first]);
      return op('a');
    }
    op('(');
    for (size_t i = first; i < items.size() && i < first + kBatch; ++i) save(items[i]);
    op('e');
  }
}

// batch_dict, likewise
void Writer::set_iterated(const Pairs& pairs) {
  for (size_t first = 0; first < pairs.size(); first += kBatch) {
    if (pairs.size() - first == 1) {
      save(pairs[first].first);
      save(pairs[first].second);
      return op('s');
    }
    op('(');
    for (size_t i = first; i < pairs.size() && i < first + kBatch; ++i) {
      save(pairs[i].first);
      save(pairs[i].second);
    }
    op('u');
  }
}

}  // namespace

std::vector<std::byte> write(const Ref& root, const WriteOptions& options) {
  return Writer(options).run(root);
}

}  // namespace qcts::pickle
