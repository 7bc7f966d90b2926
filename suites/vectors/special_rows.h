// SPDX-License-Identifier: BSD-3-Clause
// Rows of a weight on which implementations of one scheme are known to differ.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

struct SpecialRow {
  std::string name;  // "ties_2": unique among the rows of a shape
  std::string_view hunts;
  std::vector<std::byte> weight;  // row-major [n, k] of the shape's dtype
};

// Returns the rows for a shape that the scheme takes. With more than one row, each row holds the same values
// at other places. The values depend on nothing but the scheme and the shape.
std::vector<SpecialRow> special_rows(const Scheme& scheme, const WeightShape& shape);

}  // namespace qcts
