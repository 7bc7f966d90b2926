// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reference/formats/pickle/pickle.h"
#include "reference/formats/pickle/pool.h"

namespace qcts::pickle {

void destroy(Node* node) {
  NodeSlab* slab = node->own.slab;
  if (slab == nullptr) {
    delete node;
    return;
  }
  node->~Node();
  slab->give_back(1);
}

Ref make_node(Kind kind) {
  Ref node(new Node);
  node->kind = kind;
  return node;
}

Ref copy_of(const Node& node) { return Ref(new Node(node)); }

Ref none() { return make_node(Kind::none); }

Ref boolean(bool value) {
  Ref node = make_node(Kind::boolean);
  node->boolean = value;
  return node;
}

Ref integer(int64_t value) {
  Ref node = make_node(Kind::integer);
  node->integer = value;
  return node;
}

Ref integer(std::span<const std::byte> bytes) {
  const auto byte_at = [&](size_t i) { return std::to_integer<uint8_t>(bytes[i]); };
  const uint8_t sign = !bytes.empty() && byte_at(bytes.size() - 1) >= 0x80 ? 0xff : 0;
  size_t count = bytes.size();
  while (count > 0 && byte_at(count - 1) == sign && (count == 1 || (byte_at(count - 2) ^ sign) < 0x80))
    --count;
  if (count <= 8) {
    uint64_t value = sign != 0 ? ~uint64_t{0} : 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | byte_at(i);
    return integer(static_cast<int64_t>(value));
  }
  Ref node = make_node(Kind::big_integer);
  node->text = std::string_view(reinterpret_cast<const char*>(bytes.data()), count);
  return node;
}

Ref real(double value) {
  Ref node = make_node(Kind::real);
  node->real = value;
  return node;
}

Ref string(std::string_view value) {
  Ref node = make_node(Kind::string);
  node->text = value;
  return node;
}

Ref tuple(Refs items) {
  Ref node = make_node(Kind::tuple);
  node->items = std::move(items);
  return node;
}

Ref list(Refs items) {
  Ref node = make_node(Kind::list);
  node->items = std::move(items);
  return node;
}

Ref dict() { return make_node(Kind::dict); }

Ref global(std::string_view module, std::string_view name) {
  Ref node = make_node(Kind::global);
  node->text = std::string(module).append(" ").append(name);
  return node;
}

Ref call(Ref callable, Refs arguments) {
  Ref node = make_node(Kind::call);
  node->items = {std::move(callable), tuple(std::move(arguments))};
  return node;
}

Ref persistent(Ref id) {
  Ref node = make_node(Kind::persistent);
  node->items = {std::move(id)};
  return node;
}

bool is_global(const Ref& node, std::string_view module, std::string_view name) {
  if (node == nullptr || node->kind != Kind::global) return false;
  const std::string_view text = node->text;
  return text.size() == module.size() + 1 + name.size() && text.starts_with(module) &&
         text[module.size()] == ' ' && text.ends_with(name);
}

bool is_call(const Ref& node, std::string_view module, std::string_view name) {
  return node != nullptr && node->kind == Kind::call && is_global(node->items.at(0), module, name);
}

std::string integer_text(const Ref& node) {
  if (node->kind == Kind::integer) return std::to_string(node->integer);
  const std::string_view bytes = node->text;
  const bool negative = static_cast<uint8_t>(bytes.back()) >= 0x80;
  // The magnitude in words of 32 bits, least first.
  std::vector<uint32_t> words(bytes.size() / 4 + 1);
  uint64_t carry = negative ? 1 : 0;
  for (size_t i = 0; i < words.size(); ++i) {
    uint32_t word = 0;
    for (size_t j = 4; j-- > 0;)
      word = word << 8 | (4 * i + j < bytes.size() ? static_cast<uint8_t>(bytes[4 * i + j])
                          : negative               ? 0xff
                                                   : 0);
    carry += negative ? ~word : word;
    words[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  std::string digits;  // last first
  const auto is_zero = [&] { return std::ranges::all_of(words, [](uint32_t word) { return word == 0; }); };
  const bool decimal = bytes.size() <= 32;
  while (decimal && !is_zero()) {
    uint64_t rest = 0;
    for (size_t i = words.size(); i-- > 0;) {
      rest = rest << 32 | words[i];
      words[i] = static_cast<uint32_t>(rest / 10);
      rest %= 10;
    }
    digits += static_cast<char>('0' + rest);
  }
  for (size_t i = 0; !decimal && i < 8 * words.size(); ++i)
    digits += "0123456789abcdef"[words[i / 8] >> (4 * (i % 8)) & 15];
  while (digits.ends_with('0')) digits.pop_back();
  digits += decimal ? "" : "x0";
  if (negative) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

Ref find(const Ref& mapping, std::string_view key) {
  if (mapping == nullptr) return nullptr;
  for (const auto& [name, value] : mapping->pairs) {
    if (name->kind == Kind::string && name->text == key) return value;
  }
  return nullptr;
}

Ref read(std::span<const std::byte> data, const ReadOptions& options) {
  if (data.size() > options.limits.pickle_bytes) {
    refuse(RefusalClass::LimitExceeded, "data.pkl: the pickle has " + std::to_string(data.size()) + " bytes",
           0);
  }
  uint64_t used = 0;
  Ref root = read_first(data, used, options);
  if (used != data.size()) refuse(RefusalClass::PickleStack, "data.pkl: bytes follow STOP", used);
  return root;
}

}  // namespace qcts::pickle
