// SPDX-License-Identifier: BSD-3-Clause
// Copies a struct of the ABI that the compiler of a plug-in laid out.
// The struct may be shorter or longer than our struct.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace qcts {

// `given` begins with its struct_size.
// Fields beyond its end become 0; bytes beyond the end of T are dropped.
// Throws std::runtime_error, whose text begins with `name`, if struct_size is less than `min_bytes`.
template <class T>
T known_part(const void* given, size_t min_bytes, const std::string& name) {
  uint32_t given_bytes;
  std::memcpy(&given_bytes, given, sizeof given_bytes);
  if (given_bytes < min_bytes)
    throw std::runtime_error(name + ": struct_size " + std::to_string(given_bytes) + ", need " +
                             std::to_string(min_bytes));
  T known = {};
  std::memcpy(&known, given, std::min<size_t>(given_bytes, sizeof known));
  return known;
}

}  // namespace qcts
