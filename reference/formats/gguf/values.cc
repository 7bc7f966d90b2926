// SPDX-License-Identifier: BSD-3-Clause
// Reads the values of metadata.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "reference/formats/gguf/cursor.h"
#include "reference/formats/gguf/gguf.h"

namespace qcts {
namespace {

struct ValueTypeRow {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array<ValueTypeRow, kGgufValueTypeCount> kValueTypes = {{{"uint8", 1},
                                                                        {"int8", 1},
                                                                        {"uint16", 2},
                                                                        {"int16", 2},
                                                                        {"uint32", 4},
                                                                        {"int32", 4},
                                                                        {"float32", 4},
                                                                        {"bool", 1},
                                                                        {"string", 0},
                                                                        {"array", 0},
                                                                        {"uint64", 8},
                                                                        {"int64", 8},
                                                                        {"float64", 8}}};

std::string float_text(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string number_text(GgufValueType type, uint64_t bits) {
  switch (type) {
    case GgufValueType::boolean:
      return bits != 0 ? "true" : "false";
    case GgufValueType::float32:
      return float_text(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))), 9);
    case GgufValueType::float64:
      return float_text(std::bit_cast<double>(bits), 17);
    case GgufValueType::int8:
    case GgufValueType::int16:
    case GgufValueType::int32:
    case GgufValueType::int64: {
      const int unused = 64 - 8 * static_cast<int>(gguf_value_bytes(type));
      return std::to_string(static_cast<int64_t>(bits << unused) >> unused);
    }
    default:
      return std::to_string(bits);
  }
}

std::string array_text(const GgufValue& value, uint64_t most) {
  if (value.count > most || value.item_type == GgufValueType::array)
    return "array of " + std::to_string(value.count) + " " +
           std::string(gguf_value_type_name(value.item_type)) + (value.count == 1 ? "" : "s");
  const Limits limits;
  GgufCursor cursor(value.items, limits);
  std::string text = "[";
  for (uint64_t i = 0; i < value.count; ++i) {
    text += i > 0 ? ", " : "";
    if (value.item_type == GgufValueType::string) {
      text += '"' + std::string(cursor.string("a string")) + '"';
      continue;
    }
    const auto bytes = cursor.take(gguf_value_bytes(value.item_type), "an item");
    uint64_t bits = 0;
    for (size_t b = bytes.size(); b-- > 0;) bits = bits << 8 | std::to_integer<uint64_t>(bytes[b]);
    text += number_text(value.item_type, bits);
  }
  return text + "]";
}

}  // namespace

std::string_view gguf_value_type_name(GgufValueType type) {
  return kValueTypes.at(static_cast<size_t>(type)).name;
}

uint64_t gguf_value_bytes(GgufValueType type) { return kValueTypes.at(static_cast<size_t>(type)).bytes; }

const GgufValue* find_gguf_value(const Gguf& file, std::string_view key) {
  const auto found = std::ranges::find(file.metadata, key, &GgufPair::key);
  return found == file.metadata.end() ? nullptr : &found->value;
}

std::optional<int64_t> gguf_integer(const GgufValue& value) {
  switch (value.type) {
    case GgufValueType::uint8:
    case GgufValueType::uint16:
    case GgufValueType::uint32:
    case GgufValueType::uint64:
      return value.bits > INT64_MAX ? std::nullopt : std::optional(static_cast<int64_t>(value.bits));
    case GgufValueType::int8:
    case GgufValueType::int16:
    case GgufValueType::int32:
    case GgufValueType::int64: {
      const int unused = 64 - 8 * static_cast<int>(gguf_value_bytes(value.type));
      return static_cast<int64_t>(value.bits << unused) >> unused;
    }
    default:
      return std::nullopt;
  }
}

std::string gguf_value_text(const GgufValue& value, uint64_t most) {
  if (value.type == GgufValueType::string) return std::string(value.text);
  if (value.type == GgufValueType::array) return array_text(value, most);
  return number_text(value.type, value.bits);
}

}  // namespace qcts
