// SPDX-License-Identifier: BSD-3-Clause
// A small picture of where a matrix is wrong. Faults of a tail, a tile or a lane are recognized at a glance.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace qcts {

struct WrongMap {
  std::string of;               // "y", or the name of a plane
  uint64_t rows = 0, cols = 0;  // of the matrix, in elements
  uint64_t rows_a_cell = 1,
           cols_a_cell = 1;  // powers of two; cells at the right and lower edge may be smaller
  // One string per row of cells, one letter per cell: the share of its elements that are wrong:
  // '0' is none, '1' to '8' are some, in eighths rounded up, but not all, and '9' is all.
  std::vector<std::string> cells;

  bool operator==(const WrongMap&) const = default;
};

inline constexpr uint64_t kMapRows = 32, kMapCols = 64;  // the maximum number of cells

// Returns the map of a row-major matrix, element i of which is wrong if is_wrong[i]. `cols` divides the size.
WrongMap wrong_map(std::string of, const std::vector<bool>& is_wrong, uint64_t cols);

nlohmann::ordered_json to_json(const WrongMap& map);
// throws std::runtime_error or nlohmann's exception that names the field
WrongMap wrong_map_from_json(const nlohmann::ordered_json& json);

}  // namespace qcts
