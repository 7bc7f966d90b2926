// SPDX-License-Identifier: BSD-3-Clause
#include "reports/wrong_map.h"

#include <algorithm>

namespace qcts {
namespace {

// The smallest power of two with which `count` elements fit into `cells` cells.
uint64_t elements_a_cell(uint64_t count, uint64_t cells) {
  uint64_t step = 1;
  while ((count + step - 1) / step > cells) step *= 2;
  return step;
}

char share_letter(uint64_t wrong, uint64_t all) {
  if (wrong == 0) return '0';
  if (wrong == all) return '9';
  return static_cast<char>('0' + std::min<uint64_t>(8, (8 * wrong + all - 1) / all));
}

}  // namespace

WrongMap wrong_map(std::string of, const std::vector<bool>& is_wrong, uint64_t cols) {
  WrongMap map;
  map.of = std::move(of);
  map.rows = is_wrong.size() / std::max<uint64_t>(1, cols);
  map.cols = cols;
  map.rows_a_cell = elements_a_cell(map.rows, kMapRows);
  map.cols_a_cell = elements_a_cell(map.cols, kMapCols);
  for (uint64_t top = 0; top < map.rows; top += map.rows_a_cell) {
    std::string line;
    const uint64_t bottom = std::min(map.rows, top + map.rows_a_cell);
    for (uint64_t left = 0; left < cols; left += map.cols_a_cell) {
      const uint64_t right = std::min(cols, left + map.cols_a_cell);
      uint64_t wrong = 0;
      for (uint64_t row = top; row < bottom; ++row)
        for (uint64_t col = left; col < right; ++col) wrong += is_wrong[row * cols + col];
      line += share_letter(wrong, (bottom - top) * (right - left));
    }
    map.cells.push_back(std::move(line));
  }
  return map;
}

nlohmann::ordered_json to_json(const WrongMap& map) {
  return {{"of", map.of},
          {"rows", map.rows},
          {"cols", map.cols},
          {"rows_a_cell", map.rows_a_cell},
          {"cols_a_cell", map.cols_a_cell},
          {"cells", map.cells}};
}

WrongMap wrong_map_from_json(const nlohmann::ordered_json& json) {
  return {json.at("of"),          json.at("rows"),        json.at("cols"),
          json.at("rows_a_cell"), json.at("cols_a_cell"), json.at("cells")};
}

}  // namespace qcts
