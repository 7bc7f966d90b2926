// SPDX-License-Identifier: BSD-3-Clause
// Tests the emulated tiles, on which AMX kernels are judged if there is no AMX, against sums written out by
// hand from the definitions. An emulator more lenient than the instructions would let a wrong kernel pass.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/emulated/tiles.h"

namespace qcts {
namespace {

struct TileShape {
  uint8_t rows;
  uint16_t row_bytes;
};

// Tile 0 holds sums; 1 and 2 hold factors.
void configure_tiles(TileShape sum, TileShape a, TileShape b) {
  uint8_t config[64] = {1};
  const TileShape shapes[] = {sum, a, b};
  for (int i = 0; i < 3; ++i) {
    std::memcpy(config + 16 + 2 * i, &shapes[i].row_bytes, 2);
    config[48 + i] = shapes[i].rows;
  }
  _tile_loadconfig(config);
}

// Four rows by three columns, eight k: every element differs, and both ends of both ranges occur.
TEST(EmulatedTiles, MultiplySignedBytesByUnsignedOnes) {
  configure_tiles({4, 12}, {4, 8}, {2, 12});
  int8_t a[4][8];
  uint8_t b[2][12];  // [k / 4][4 * column + k % 4]
  int32_t sums[4][16] = {}, want[4][3] = {};
  for (int m = 0; m < 4; ++m)
    for (int k = 0; k < 8; ++k) a[m][k] = static_cast<int8_t>(m == 0 ? -128 : 37 * k - 50 * m);
  for (int n = 0; n < 3; ++n)
    for (int k = 0; k < 8; ++k)
      b[k / 4][4 * n + k % 4] = static_cast<uint8_t>(n == 0 ? 255 : 41 * k + 90 * n);
  for (int m = 0; m < 4; ++m)
    for (int n = 0; n < 3; ++n) {
      sums[m][n] = want[m][n] = 1000 * m + n;
      for (int k = 0; k < 8; ++k) want[m][n] += a[m][k] * b[k / 4][4 * n + k % 4];
    }
  ASSERT_EQ(want[0][0], -8 * 128 * 255);
  sums[0][3] = 77;  // outside the tile
  _tile_loadd(0, sums, 64);
  _tile_loadd(1, a, 8);
  _tile_loadd(2, b, 12);
  _tile_dpbsud(0, 1, 2);
  _tile_stored(0, sums, 64);
  for (int m = 0; m < 4; ++m)
    for (int n = 0; n < 3; ++n) EXPECT_EQ(sums[m][n], want[m][n]) << m << ", " << n;
  EXPECT_EQ(sums[0][3], 77);
  _tile_release();
}

// Returns one output, sum + x * w over pairs of bfloat16 that are given by their upper 16 bits.
float sum_of_pairs(float sum, const std::vector<uint16_t>& x, const std::vector<uint16_t>& w) {
  const auto pairs = static_cast<uint8_t>(x.size() / 2);
  configure_tiles({1, 4}, {1, static_cast<uint16_t>(4 * pairs)}, {pairs, 4});
  _tile_loadd(0, &sum, 64);
  _tile_loadd(1, x.data(), 64);
  _tile_loadd(2, w.data(), 4);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, &sum, 64);
  _tile_release();
  return sum;
}

constexpr uint16_t kOne = 0x3F80, kTwo24 = 0x4B80, kMinusTwo24 = 0xCB80;

TEST(EmulatedTiles, AddEvenAndOddProductsApartAndThenToTheSum) {
  EXPECT_EQ(sum_of_pairs(0x1p24f, {kOne, kOne}, {kOne, kOne}), 0x1p24f + 2) << "one after the other: 2^24";
  EXPECT_EQ(sum_of_pairs(0, {kTwo24, kOne, kMinusTwo24, kOne}, {kOne, kOne, kOne, kOne}), 2.0f);
  EXPECT_EQ(sum_of_pairs(0, {kTwo24, 0, kOne, 0, kMinusTwo24, 0}, {kOne, 0, kOne, 0, kOne, 0}), 0.0f)
      << "2^24 + 1 rounds to even";
}

TEST(EmulatedTiles, TakeSubnormalNumbersForZeroAndMakeNone) {
  EXPECT_EQ(sum_of_pairs(0, {0x0040, 0}, {kTwo24, 0}), 0.0f) << "a subnormal factor";
  EXPECT_EQ(sum_of_pairs(0x1p-130f, {0, 0}, {0, 0}), 0.0f) << "a subnormal sum";
  EXPECT_EQ(sum_of_pairs(0, {0x1F80, 0}, {0x1F80, 0}), 0.0f) << "2^-64 * 2^-64";
  EXPECT_EQ(sum_of_pairs(0, {0x2080, 0}, {0x1F80, 0}), 0x1p-126f) << "2^-62 * 2^-64, the least that stays";
}

// The emulator must end the program in the cases in which hardware raises #UD or #GP.
TEST(EmulatedTiles, EndTheProgramWhereHardwareFaults) {
  const auto dies = testing::KilledBySignal(SIGILL);
  EXPECT_EXIT(_tile_zero(0), dies, "") << "no tile is configured";
  EXPECT_EXIT(configure_tiles({17, 4}, {1, 4}, {1, 4}), dies, "") << "17 rows";
  EXPECT_EXIT(configure_tiles({1, 68}, {1, 4}, {1, 4}), dies, "") << "68 bytes per row";
  EXPECT_EXIT((configure_tiles({1, 4}, {1, 8}, {1, 4}), emulated_tile_dpbsud(0, 1, 2)), dies, "")
      << "8 k of x meet 4 of the weights";
  EXPECT_EXIT((configure_tiles({1, 4}, {2, 4}, {1, 4}), emulated_tile_dpbsud(0, 1, 2)), dies, "")
      << "two rows of x, one of sums";
}

}  // namespace
}  // namespace qcts
