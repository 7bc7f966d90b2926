// SPDX-License-Identifier: BSD-3-Clause
// Reads the header of a GGUF file from front to back. Every length is checked before it is used.
#pragma once

#include <bit>
#include <concepts>
#include <string>
#include <string_view>

#include "reference/formats/gguf/gguf.h"
#include "reference/formats/io/byte_io.h"
#include "reference/formats/refusal.h"

namespace qcts {

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, const Limits& limits) : bytes_(bytes), limits_(limits) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

  // These functions throw Refused (Truncated) if the file ends too early; `what` names what was to be read.
  template <std::unsigned_integral T>
  T number(std::string_view what) {
    require(sizeof(T), what);
    const T value = load_le<T>(bytes_, at_);
    at_ += sizeof(T);
    return value;
  }
  std::span<const std::byte> take(uint64_t count, std::string_view what) {
    require(count, what);
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  std::string_view string(std::string_view what) { return as_text(take(number<uint64_t>(what), what)); }
  // Reads a key or a tensor's name. Throws Refused: EntryName for one that is empty, is not valid UTF-8 or
  // holds a zero byte, LimitExceeded for one that is too long.
  std::string_view name(std::string_view what);
  // Reads a value, whose type comes first. `key` goes into refusals.
  GgufValue value(std::string_view key);

 private:
  void require(uint64_t count, std::string_view what) const;
  GgufValueType value_type(std::string_view key);
  void require_bool(std::string_view key, std::span<const std::byte> bytes, uint64_t at) const;
  void skip_items(std::string_view key, GgufValueType type, uint64_t count, uint64_t depth);

  std::span<const std::byte> bytes_;
  const Limits& limits_;
  uint64_t at_ = 0;
};

}  // namespace qcts
