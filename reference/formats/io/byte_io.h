// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes little-endian integers at byte positions, and views byte spans as text.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace qcts {

// Reads the integer at `at`. Requires at + sizeof(T) <= bytes.size().
template <std::unsigned_integral T>
T load_le(std::span<const std::byte> bytes, uint64_t at) {
  static_assert(std::endian::native == std::endian::little);
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <std::unsigned_integral T>
void append_le(std::vector<std::byte>& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xff));
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void append(std::vector<std::byte>& out, std::string_view text) { append(out, as_bytes(text)); }

}  // namespace qcts
