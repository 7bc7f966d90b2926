// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/words.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "reference/dialects/classes/attributes.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

constexpr size_t kShown = 60, kShownBefore = 20, kLongestIdentity = 64 << 10, kShownItems = 8;

std::string bits_text(double value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%016llx",
                static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
  return text;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan (" + bits_text(value) + ")";
  char digits[40];
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (text.find_first_of(".ein") == std::string::npos) text += ".0";
  return text;
}

std::string hexadecimal_of(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

std::string bytes_text(std::string_view bytes) {
  return std::to_string(bytes.size()) + " bytes " + hexadecimal_of(bytes.substr(0, kShown / 2)) +
         (bytes.size() > kShown / 2 ? "..." : "");
}

std::string escaped(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string count_text(const char* kind, size_t count) {
  return count == 0 ? std::string("empty ") + kind : std::string(kind) + " of " + std::to_string(count);
}

std::string dotted(const Ref& global) {
  const GlobalName name = split_global(global);
  return name.module.empty() ? std::string(name.name)
                             : std::string(name.module) + "." + std::string(name.name);
}

std::string call_text(const Ref& node) {
  std::string text = node->items.empty() ? "" : std::string(split_global(node->items[0]).name);
  const bool plain = node->items.size() > 1 && node->items[1]->kind == Kind::tuple;
  if (!plain || node->items[1]->items.size() > kShownItems) return text + "(...)";
  std::string arguments;
  for (const Ref& item : node->items[1]->items)
    arguments += (arguments.empty() ? "" : ", ") + (item->is_leaf() ? value_text(item) : "...");
  return text + "(" + arguments + ")";
}

std::string key_words(const Ref& key) {
  if (key->kind != Kind::tuple) return value_text(key);
  std::string text;
  for (const Ref& item : key->items) text += (text.empty() ? "" : ", ") + key_words(item);
  return "(" + text + ")";
}

void append_identity(std::string& text, const Ref& node) {
  if (text.size() > kLongestIdentity) return;
  if (!node) {
    text += '~';
    return;
  }
  text += static_cast<char>('a' + static_cast<int>(node->kind));
  switch (node->kind) {
    case Kind::boolean:
      text += node->boolean ? '1' : '0';
      break;
    case Kind::integer:
    case Kind::enclosing:
      text += std::to_string(node->integer);
      break;
    case Kind::real:
      text += bits_text(node->real);
      break;
    default:
      text += std::to_string(node->text.size()) + ":" + node->text.str();
  }
  if (node->is_leaf()) return;
  text += '(';
  for (const Ref& item : node->items) append_identity(text, item);
  for (const auto& [key, value] : node->pairs) append_identity(text, key), append_identity(text, value);
  append_identity(text, node->state);
  text += ')';
}

}  // namespace

std::string in_quotes(std::string_view text) {
  if (text.size() <= kShown) return escaped(text);
  return escaped(text.substr(0, kShown)) + "... (" + std::to_string(text.size()) + " bytes)";
}

std::pair<std::string, std::string> in_quotes_both(std::string_view a, std::string_view b) {
  const size_t at = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  if (at + kShownBefore <= kShown || std::max(a.size(), b.size()) <= kShown)
    return {in_quotes(a), in_quotes(b)};
  const size_t from = at - kShownBefore;
  return {"..." + in_quotes(a.substr(from)), "..." + in_quotes(b.substr(from))};
}

std::string shape_words(const std::vector<int64_t>& shape) { return nlohmann::json(shape).dump(); }

std::string value_text(const Ref& node) {
  if (!node) return "absent";
  switch (node->kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return node->boolean ? "True" : "False";
    case Kind::integer:
    case Kind::big_integer:
      return pickle::integer_text(node);
    case Kind::real:
      return real_text(node->real);
    case Kind::string:
      return in_quotes(node->text);
    case Kind::bytes:
      return bytes_text(node->text);
    case Kind::tuple:
      return count_text("tuple", node->items.size());
    case Kind::list:
      return count_text("list", node->items.size());
    case Kind::dict:
      return count_text("dict", node->pairs.size());
    case Kind::set:
      return count_text("set", node->items.size());
    case Kind::global:
      return dotted(node);
    case Kind::call:
    case Kind::new_object:
      return call_text(node);
    case Kind::persistent:
      return "a storage";
    case Kind::enclosing:
      return node->integer == 1 ? "what holds it"
                                : "what holds it, " + std::to_string(node->integer) + " levels above";
  }
  return "";
}

std::pair<std::string, std::string> value_texts(const Ref& a, const Ref& b) {
  if (a && b && a->kind == Kind::string && b->kind == Kind::string) return in_quotes_both(a->text, b->text);
  if (a && b && a->kind == Kind::bytes && b->kind == Kind::bytes) {
    const std::string_view x = a->text, y = b->text;
    const size_t at = static_cast<size_t>(std::ranges::mismatch(x, y).in1 - x.begin());
    const std::string from = at == 0 ? "" : ", from byte " + std::to_string(at);
    return {bytes_text(x.substr(at)) + from, bytes_text(y.substr(at)) + from};
  }
  return {value_text(a), value_text(b)};
}

std::string identity_text(const Ref& node) {
  std::string text;
  append_identity(text, node);
  return text;
}

std::string key_step(const Ref& key, bool first) {
  if (key->kind != Kind::string) return "[" + key_words(key) + "]";
  const std::string_view text = key->text;
  const bool plain = !text.empty() && std::ranges::none_of(text, [](unsigned char c) { return c < 0x20; });
  if (!plain) return "[" + escaped(text) + "]";
  return (first ? "" : ".") + std::string(text);
}

std::string element_words(DType dtype, std::span<const std::byte> elements, uint64_t index) {
  const size_t width = std::max<size_t>(1, dtype_bits(dtype) / 8);
  std::string text = "0x";
  uint64_t bits = 0;
  for (size_t i = width; i-- > 0;) {
    char digits[3];
    const auto byte = std::to_integer<unsigned>(elements[index * width + i]);
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
    bits = bits << 8 | byte;
  }
  switch (dtype) {
    case DType::float32:
    case DType::float64:
    case DType::float16:
    case DType::bfloat16: {
      char number[32];
      std::snprintf(number, sizeof number, " (%.9g)", decode_float(dtype, bits));
      return text + number;
    }
    default:
      return text;
  }
}

}  // namespace qcts
