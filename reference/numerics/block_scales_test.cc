// SPDX-License-Identifier: BSD-3-Clause
// Tests NaN as the library's integer arithmetic leaves it, nibble order, and the tiles of swizzled scales.
#include "reference/numerics/block_scales.h"

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace qcts {
namespace {

// Recorded from torchao 0.18.0, _f32_to_floatx_unpacked, on a float32 of these bits.
TEST(FloatxCode, NanKeepsTheBitsOfTheIntegerArithmetic) {
  const auto code = [](DType element, uint32_t bits) {
    return floatx_code(element, std::bit_cast<float>(bits));
  };
  EXPECT_EQ(code(DType::float4_e2m1fn_x2, 0x7FC00000), 3);
  EXPECT_EQ(code(DType::float4_e2m1fn_x2, 0xFFC00000), 0xB);
  EXPECT_EQ(code(DType::float4_e2m1fn_x2, 0x7FF00000), 4);
  EXPECT_EQ(code(DType::float6_e2m3fn, 0x7FC00000), 0xC);
  EXPECT_EQ(code(DType::float6_e3m2fn, 0x7FC00000), 0xE);
}

TEST(FloatxCode, InfinityIsTheLargestElement) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(floatx_code(DType::float4_e2m1fn_x2, -infinity), 0xF);
  EXPECT_EQ(floatx_code(DType::float6_e2m3fn, infinity), 0x1F);
  EXPECT_EQ(floatx_code(DType::float6_e3m2fn, -infinity), 0x3F);
}

TEST(Pair, EvenElementIsTheLowNibble) {
  std::vector<std::byte> bytes(2);
  store_pair(bytes, 1, 0x3, 0xB);
  EXPECT_EQ(bytes[1], std::byte{0xB3});
  EXPECT_EQ(load_nibble(bytes, 2), 0x3);
  EXPECT_EQ(load_nibble(bytes, 3), 0xB);
}

TEST(Swizzle, EveryScaleHasAPlaceOfItsOwnAndComesBack) {
  for (const auto& [rows, cols] :
       std::initializer_list<std::pair<int64_t, int64_t>>{{1, 1}, {130, 5}, {256, 8}}) {
    const std::vector<int64_t> shape = swizzled_shape(rows, cols);
    std::set<int64_t> places;
    std::vector<std::byte> plain(rows * cols), tiles(shape[0] * shape[1]), back(rows * cols);
    for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i % 251 + 1);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) {
        const int64_t at = swizzled_offset(cols, r, c);
        places.insert(at);
        EXPECT_EQ(swizzled_place(rows, cols, at),
                  "row " + std::to_string(r) + ", block " + std::to_string(c));
      }
    EXPECT_EQ(places.size(), plain.size());
    EXPECT_LT(*places.rbegin(), static_cast<int64_t>(tiles.size()));
    swizzle(rows, cols, plain, tiles);
    unswizzle(rows, cols, tiles, back);
    EXPECT_EQ(plain, back);
  }
}

// cuBLAS documentation, 1D block scaling factors layout: row 33 is 4 bytes after row 1; block 4 starts the
// next tile.
TEST(Swizzle, OffsetsAreThoseOfTheTiles) {
  EXPECT_EQ(swizzled_offset(8, 1, 0), 16);
  EXPECT_EQ(swizzled_offset(8, 33, 0), 20);
  EXPECT_EQ(swizzled_offset(8, 0, 4), 512);
  EXPECT_EQ(swizzled_offset(8, 128, 0), 1024);
}

TEST(Swizzle, PaddingThatIsNotZeroIsNotDropped) {
  std::vector<std::byte> tiles(512), plain(3);
  unswizzle(3, 1, tiles, plain);
  tiles[511] = std::byte{1};
  EXPECT_THROW(unswizzle(3, 1, tiles, plain), std::invalid_argument);
}

}  // namespace
}  // namespace qcts
