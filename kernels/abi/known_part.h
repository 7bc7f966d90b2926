// SPDX-License-Identifier: BSD-3-Clause
// A struct of the ABI that another compilation wrote, as large as this program knows it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace qcts {

// `given` begins with its struct_size. What it lacks is 0, what it has beyond T is left out. Throws
// std::runtime_error, beginning with `name`, where it is smaller than `least_bytes`.
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
