// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the scheme tests: hex encoding and comparison of planes.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

inline std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (std::byte b : bytes) {
    hex += kDigits[static_cast<int>(b) >> 4];
    hex += kDigits[static_cast<int>(b) & 0xF];
  }
  return hex;
}

// Compares plane by plane. NaN equals NaN.
inline void expect_same_planes(const Planes& want, const Planes& got) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(want[i].name, got[i].name);
    EXPECT_FALSE(first_difference(want[i], got[i]).has_value())
        << want[i].name << ": want " << to_hex(want[i].bytes) << ", got " << to_hex(got[i].bytes);
  }
}

}  // namespace qcts
