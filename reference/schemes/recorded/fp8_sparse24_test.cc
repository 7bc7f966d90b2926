// SPDX-License-Identifier: BSD-3-Clause
// Tests the 2:4 float8 scheme, which no library writes without a GPU: the compressor's rules, the index map
// of the metadata, and the refusal of positions that no compressor writes.
#include <cstring>
#include <stdexcept>

#include "reference/schemes/recorded/testing.h"

namespace qcts {
namespace {

const Scheme& sparse24_scheme() { return *find_scheme("fp8_sparse24_row"); }

Layout kernel_layout() { return sparse24_scheme().layout_named("cutlass_sm90"); }

// Returns bfloat16 bytes of values that e4m3 represents under scale 1 (the row's maximum is 448).
std::vector<std::byte> row(std::initializer_list<float> values) {
  std::vector<std::byte> bytes;
  for (float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bytes.push_back(static_cast<std::byte>(bits >> 16));
    bytes.push_back(static_cast<std::byte>(bits >> 24));
  }
  return bytes;
}

// One chunk of each kind: two values, none, one at the start, one at the end (and signed zeros).
TEST(Fp8Sparse24, CompressesByTheRulesOfTheKernel) {
  const auto weight = row({0, 448, 0, 1, 0, 0, -0.0f, 0, 0, 2, 0, -0.0f, 0, 0, 0, 4});
  const WeightShape shape = {DType::bfloat16, 1, 16};
  const Planes planes = sparse24_scheme().quantize({shape.dtype, 1, 16, weight});
  EXPECT_EQ(to_hex(plane(planes, "qdata").bytes), "7e38000040000048");
  EXPECT_EQ(to_hex(plane(planes, "sparse_metadata").bytes), "0dcd");
  std::vector<std::byte> positive = weight;
  for (size_t i = 1; i < positive.size(); i += 2)
    if (positive[i] == std::byte{0x80} && positive[i - 1] == std::byte{0}) positive[i] = std::byte{0};
  EXPECT_EQ(to_hex(sparse24_scheme().dequantize(planes, shape)), to_hex(positive));
}

TEST(Fp8Sparse24, ThreeOfFourAndARowOfZerosAreRefused) {
  const auto three = row({1, 2, 3, 0, 0, 0, 0, 448}), zeros = row({0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_THROW(sparse24_scheme().quantize({DType::bfloat16, 1, 8, three}), std::invalid_argument);
  EXPECT_THROW(sparse24_scheme().quantize({DType::bfloat16, 1, 8, zeros}), std::invalid_argument);
}

// Byte of (row, k) in the metadata: (k / 128) * rows * 16 + row * 16 + k % 128 / 8, rows padded to 64.
TEST(Fp8Sparse24, MetadataStandsAsTheKernelReadsIt) {
  const WeightShape shape = {DType::bfloat16, 3, 136};
  Planes plain = make_planes(sparse24_scheme().plane_specs(shape, kPlain));
  plain[1].bytes[2 * 17 + 16] = std::byte{0x40};  // row 2, k 132 .. 135: positions 0 and 1
  plain[0].bytes[2 * 68 + 66] = plain[0].bytes[2 * 68 + 67] = std::byte{0x38};
  const Planes packed = sparse24_scheme().pack(plain, shape, kernel_layout());
  ASSERT_EQ(packed[1].shape, (std::vector<int64_t>{64, 32}));
  EXPECT_EQ(packed[1].bytes[64 * 16 + 2 * 16], std::byte{0x40});
  expect_same_planes(plain, sparse24_scheme().unpack(packed, shape, kernel_layout()));
  EXPECT_EQ(sparse24_scheme().place(shape, kernel_layout(), "sparse_metadata", 64 * 16 + 2 * 16),
            "row 2, places of k 128 to 135");
}

TEST(Fp8Sparse24, PlacesOutOfOrderAndFilledPaddingAreRefused) {
  const WeightShape shape = {DType::bfloat16, 1, 8};
  Planes packed = make_planes(sparse24_scheme().plane_specs(shape, kernel_layout()));
  EXPECT_NO_THROW(sparse24_scheme().unpack(packed, shape, kernel_layout()));
  for (const int nibble : {0x1, 0x5, 0x6, 0xA, 0xF}) {
    packed[1].bytes[0] = static_cast<std::byte>(nibble);
    EXPECT_THROW(sparse24_scheme().unpack(packed, shape, kernel_layout()), std::invalid_argument) << nibble;
  }
  packed[1].bytes[0] = std::byte{0};
  packed[1].bytes[700] = std::byte{0x4};
  EXPECT_THROW(sparse24_scheme().unpack(packed, shape, kernel_layout()), std::invalid_argument);
  packed[1].bytes[700] = std::byte{0};
  packed[0].bytes[0] = std::byte{0x38};  // a value without a position
  EXPECT_THROW(sparse24_scheme().unpack(packed, shape, kernel_layout()), std::invalid_argument);
}

}  // namespace
}  // namespace qcts
