// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/gguf/cursor.h"

#include <algorithm>

#include "reference/formats/io/utf8.h"

namespace qcts {

void GgufCursor::require(uint64_t count, std::string_view what) const {
  if (count <= left()) return;
  refuse(RefusalClass::Truncated,
         std::string(what) + " of " + std::to_string(count) + " bytes reaches beyond the file of " +
             std::to_string(bytes_.size()) + ": was the copy or download complete?",
         at_);
}

std::string_view GgufCursor::name(std::string_view what) {
  const uint64_t begin = at_;
  const std::string_view text = string(what);
  if (text.size() > limits_.gguf_name_bytes)
    refuse(RefusalClass::LimitExceeded,
           std::string(what) + " has " + std::to_string(text.size()) + " bytes, more than the limit of " +
               std::to_string(limits_.gguf_name_bytes),
           begin);
  const bool zero = text.find('\0') != text.npos;
  if (text.empty() || zero || !is_utf8(text))
    refuse(RefusalClass::EntryName,
           std::string(what) + (text.empty() ? " is empty"
                                : zero       ? " holds a zero byte"
                                             : " is not valid UTF-8"),
           begin);
  return text;
}

GgufValueType GgufCursor::value_type(std::string_view key) {
  const uint64_t begin = at_;
  const auto type = number<uint32_t>("the type of a value");
  if (type >= kGgufValueTypeCount)
    refuse(RefusalClass::GgufHeader, std::string(key) + ": unknown value type " + std::to_string(type),
           begin);
  return static_cast<GgufValueType>(type);
}

void GgufCursor::require_bool(std::string_view key, std::span<const std::byte> bytes, uint64_t at) const {
  const auto odd = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
  if (odd == bytes.end()) return;
  refuse(RefusalClass::GgufHeader,
         std::string(key) + ": byte " + std::to_string(std::to_integer<int>(*odd)) + " is not a bool",
         at + static_cast<uint64_t>(odd - bytes.begin()));
}

GgufValue GgufCursor::value(std::string_view key) {
  GgufValue value;
  value.type = value_type(key);
  if (value.type == GgufValueType::string) {
    value.text = string("a string");
  } else if (value.type == GgufValueType::array) {
    value.item_type = value_type(key);
    value.count = number<uint64_t>("the length of an array");
    const uint64_t begin = at_;
    skip_items(key, value.item_type, value.count, 1);
    value.items = bytes_.subspan(begin, at_ - begin);
  } else {
    const auto bytes = take(gguf_value_bytes(value.type), "a value");
    if (value.type == GgufValueType::boolean) require_bool(key, bytes, at_ - 1);
    for (size_t i = bytes.size(); i-- > 0;)
      value.bits = value.bits << 8 | std::to_integer<uint64_t>(bytes[i]);
  }
  return value;
}

void GgufCursor::skip_items(std::string_view key, GgufValueType type, uint64_t count, uint64_t depth) {
  if (depth > limits_.gguf_depth)
    refuse(RefusalClass::LimitExceeded,
           std::string(key) + ": arrays are nested deeper than " + std::to_string(limits_.gguf_depth), at_);
  // An item takes at least these bytes, so that a count is refused before anything is done for each item.
  const uint64_t least = type == GgufValueType::string  ? 8
                         : type == GgufValueType::array ? 12
                                                        : gguf_value_bytes(type);
  if (count > left() / least)
    refuse(RefusalClass::Truncated,
           std::string(key) + ": an array of " + std::to_string(count) +
               " items reaches beyond the file: was the copy or download complete?",
           at_);
  if (type == GgufValueType::string) {
    for (uint64_t i = 0; i < count; ++i) string("a string of an array");
  } else if (type == GgufValueType::array) {
    for (uint64_t i = 0; i < count; ++i) {
      const GgufValueType inner = value_type(key);
      skip_items(key, inner, number<uint64_t>("the length of an array"), depth + 1);
    }
  } else {
    const uint64_t begin = at_;
    const auto bytes = take(count * least, "an array");
    if (type == GgufValueType::boolean) require_bool(key, bytes, begin);
  }
}

}  // namespace qcts
