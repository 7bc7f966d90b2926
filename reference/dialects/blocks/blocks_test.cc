// SPDX-License-Identifier: BSD-3-Clause
// Tests blocks written by hand. Every type is compared with the package gguf in
// suites/readers/libraries/test_gguf.py.
#include "reference/dialects/blocks/blocks.h"

#include <gtest/gtest.h>
#include <cmath>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

using Bytes = std::vector<std::byte>;

const GgufType& type_of(std::string_view name) {
  for (const GgufType& type : gguf_types())
    if (type.name == name) return type;
  throw std::invalid_argument(std::string(name));
}

std::vector<float> values_of(const GgufType& type, const Bytes& block) {
  const Tensor blocks = make_tensor(DType::uint8, {static_cast<int64_t>(block.size())}, block);
  const Tensor dense = dense_of_blocks(type, blocks, {static_cast<int64_t>(type.block_elements)});
  return load_floats(DType::float32, row_major_bytes(dense));
}

Bytes block_of(const GgufType& type, std::initializer_list<std::pair<size_t, int>> bytes) {
  Bytes block(type.block_bytes);
  for (const auto& [place, value] : bytes) block[place] = static_cast<std::byte>(value);
  return block;
}

TEST(Blocks, Q4_0HasLowNibblesFirst) {
  const GgufType& type = type_of("Q4_0");
  const auto values = values_of(type, block_of(type, {{1, 0x3C}, {2, 0xF9}}));  // d = 1
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[16], 7);
  EXPECT_EQ(values[1], -8);
}

TEST(Blocks, ANegativeScaleMakesNegativeZeros) {
  const GgufType& type = type_of("Q4_0");
  const auto values = values_of(type, block_of(type, {{1, 0xBC}, {2, 0x88}}));
  EXPECT_TRUE(values[0] == 0 && std::signbit(values[0]));
}

TEST(Blocks, Q6_KJoinsFourAndTwoBits) {
  const GgufType& type = type_of("Q6_K");
  // Element 33: the second byte of the second run: low nibble of byte 33, bits 2 and 3 of byte 128 + 1.
  const auto values = values_of(type, block_of(type, {{33, 0x05}, {129, 0x0C}, {194, 0xFE}, {209, 0x3C}}));
  EXPECT_EQ(values[33], -2.0f * (5 + 48 - 32));
}

TEST(Blocks, Q1_0AndQ2_0BeginWithTheLowestBits) {
  const GgufType &signs = type_of("Q1_0"), &twos = type_of("Q2_0");
  auto values = values_of(signs, block_of(signs, {{1, 0x3C}, {2, 0x02}}));
  EXPECT_EQ(values[0], -1);
  EXPECT_EQ(values[1], 1);
  values = values_of(twos, block_of(twos, {{1, 0x3C}, {2, 0xE4}}));
  EXPECT_EQ((std::vector<float>{values.begin(), values.begin() + 4}), (std::vector<float>{-1, 0, 1, 2}));
}

TEST(Blocks, TheScaleOf255OfMxfp4IsAPowerOfTwo) {
  const GgufType& type = type_of("MXFP4");
  const auto values = values_of(type, block_of(type, {{0, 255}, {1, 0x81}, {2, 0x07}}));
  EXPECT_EQ(values[0], std::ldexp(1.0f, 127));  // half of 2^128
  EXPECT_TRUE(values[16] == 0 && !std::signbit(values[16]));
  EXPECT_TRUE(std::isinf(values[1]));
}

TEST(Blocks, ReadableTypesAreThoseOfThePackage) {
  std::string others;
  for (const GgufType& type : gguf_types())
    if (!type.dtype && !can_decode_blocks(type)) others += std::string(type.name) + " ";
  EXPECT_EQ(others, "Q8_K Q4_0_4_4 Q4_0_4_8 Q4_0_8_8 IQ4_NL_4_4 IQ4_NL_4_8 IQ4_NL_8_8 ");
}

TEST(Blocks, ZerosAreZerosWithoutAFault) {
  for (const GgufType& type : gguf_types()) {
    if (type.dtype || !can_decode_blocks(type)) continue;
    for (const float value : values_of(type, Bytes(type.block_bytes))) ASSERT_EQ(value, 0) << type.name;
    EXPECT_TRUE(
        block_faults(type, make_tensor(DType::uint8, {type.block_bytes}, Bytes(type.block_bytes))).empty())
        << type.name;
  }
}

// The places at which a scale of 0x7C00 (infinity) or of its own kind has to be found; the first block is
// right.
TEST(Blocks, AScaleThatIsNoNumberIsAFault) {
  const std::pair<std::string_view, std::vector<std::pair<size_t, int>>> cases[] = {
      {"Q4_0", {{1, 0x7C}}},
      {"Q4_1", {{3, 0x7E}}},
      {"Q5_0", {{1, 0xFC}}},
      {"Q5_1", {{3, 0x7C}}},
      {"Q8_0", {{1, 0x7C}}},
      {"Q2_K", {{83, 0x7C}}},
      {"Q3_K", {{109, 0x7C}}},
      {"Q4_K", {{3, 0x7C}}},
      {"Q5_K", {{1, 0x7C}}},
      {"Q6_K", {{209, 0x7C}}},
      {"IQ4_NL", {{1, 0x7C}}},
      {"IQ4_XS", {{1, 0x7C}}},
      {"IQ1_M", {{55, 0x70}, {53, 0xC0}}},
      {"TQ1_0", {{53, 0x7C}}},
      {"TQ2_0", {{65, 0x7C}}},
      {"MXFP4", {{0, 255}}},
      {"NVFP4", {{3, 0x7F}}},
      {"Q1_0", {{1, 0x7C}}},
      {"Q2_0", {{1, 0x7C}}},
  };
  for (const auto& [name, bytes] : cases) {
    const GgufType& type = type_of(name);
    Bytes blocks(2 * type.block_bytes);
    for (const auto& [place, value] : bytes) blocks[type.block_bytes + place] = static_cast<std::byte>(value);
    const auto faults =
        block_faults(type, make_tensor(DType::uint8, {2 * int64_t{type.block_bytes}}, blocks));
    ASSERT_EQ(faults.size(), 1u) << name;
    EXPECT_EQ(faults[0].kind, BlockFault::Kind::scale) << name;
    EXPECT_EQ(faults[0].first, 1u) << name;
    EXPECT_EQ(faults[0].count, 1u) << name;
    EXPECT_EQ(faults[0].total, 2u) << name;
    EXPECT_FALSE(std::isfinite(faults[0].value)) << name;
  }
}

TEST(Blocks, CodesAndSignBitsThatMeanNothingAreFaults) {
  const GgufType &ternary = type_of("TQ2_0"), &nvfp4 = type_of("NVFP4");
  auto faults = block_faults(ternary, make_tensor(DType::uint8, {66}, block_of(ternary, {{63, 0xC0}})));
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, BlockFault::Kind::code);
  faults = block_faults(nvfp4, make_tensor(DType::uint8, {36}, block_of(nvfp4, {{1, 0x80}})));
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, BlockFault::Kind::idle_bits);
}

}  // namespace
}  // namespace qcts
