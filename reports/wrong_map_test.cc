// SPDX-License-Identifier: BSD-3-Clause
#include "reports/wrong_map.h"

#include <gtest/gtest.h>

namespace qcts {
namespace {

std::vector<bool> wrong_where(uint64_t rows, uint64_t cols, bool (*is_wrong)(uint64_t row, uint64_t col)) {
  std::vector<bool> flags;
  for (uint64_t i = 0; i < rows * cols; ++i) flags.push_back(is_wrong(i / cols, i % cols));
  return flags;
}

TEST(WrongMap, ShowsEachElementOfASmallMatrix) {
  const WrongMap map = wrong_map("y", wrong_where(2, 5, [](uint64_t, uint64_t col) { return col == 4; }), 5);
  EXPECT_EQ(map, (WrongMap{"y", 2, 5, 1, 1, {"00009", "00009"}}));
}

TEST(WrongMap, LargeMatricesKeepTheirTails) {
  const WrongMap map = wrong_map(
      "y", wrong_where(65, 300, [](uint64_t row, uint64_t col) { return row == 64 || col >= 296; }), 300);
  EXPECT_EQ(map.rows_a_cell, 4u);
  EXPECT_EQ(map.cols_a_cell, 8u);
  ASSERT_EQ(map.cells.size(), 17u);
  EXPECT_EQ(map.cells[0], std::string(37, '0') + "9") << "the last cell has 4 columns, all wrong";
  EXPECT_EQ(map.cells[16], std::string(38, '9')) << "the last row of cells is one row of y";
}

// One wrong element among many is not lost, and a right one among wrong ones neither.
TEST(WrongMap, NoShareIsRoundedToNoneOrAll) {
  const auto cell = [](bool one_is) {
    std::vector<bool> flags(1 << 16, !one_is);
    flags[777] = one_is;
    return wrong_map("y", flags, 1 << 16).cells[0][0];
  };
  EXPECT_EQ(cell(true), '1');
  EXPECT_EQ(cell(false), '8');
}

TEST(WrongMap, JsonGivesItBack) {
  const WrongMap map = wrong_map(
      "scale", wrong_where(40, 130, [](uint64_t row, uint64_t col) { return row * col % 7 == 1; }), 130);
  EXPECT_EQ(wrong_map_from_json(to_json(map)), map);
}

}  // namespace
}  // namespace qcts
