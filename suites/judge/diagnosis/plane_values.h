// SPDX-License-Identifier: BSD-3-Clause
// Reads planes by name.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "reference/schemes/scheme.h"

namespace qcts {

// Returns nullptr if there is no such plane.
inline const Plane* plane_named(const Planes& planes, std::string_view name) {
  const auto found = std::ranges::find(planes, name, &Plane::name);
  return found == planes.end() ? nullptr : &*found;
}

// Returns an element of an integer plane. Only uint8 is unsigned.
inline int64_t integer_at(const Plane& plane, size_t index) {
  const size_t bytes = dtype_bytes(plane.dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, plane.bytes.data() + index * bytes, bytes);
  if (plane.dtype == DType::uint8) return static_cast<int64_t>(bits);
  const int unused = 64 - 8 * static_cast<int>(bytes);
  return static_cast<int64_t>(bits << unused) >> unused;
}

}  // namespace qcts
