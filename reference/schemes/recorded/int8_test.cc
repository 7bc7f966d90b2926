// SPDX-License-Identifier: BSD-3-Clause
// Tests int8_row beyond the rows of recorded_rows.inc.
#include "reference/schemes/recorded/testing.h"

namespace qcts {
namespace {

const Scheme& int8_scheme() { return *find_scheme("int8_row"); }

// torch.full((1, 4), nan) and a row with an Inf: every code is 0, the scale is NaN or Inf.
TEST(Int8Row, NanAndInfRowsAsTorchao) {
  const auto quantize = [](const char* weight) {
    return int8_scheme().quantize({DType::float32, 1, 2, from_hex(weight)});
  };
  Planes want = {{"qdata", DType::int8, {1, 2}, from_hex("0000")},
                 {"scale", DType::float32, {1, 1}, from_hex("0000c07f")},
                 {"zero_point", DType::int8, {1, 1}, from_hex("00")}};
  expect_same_planes(want, quantize("0000c07f0000803f"));
  want[1].bytes = from_hex("0000807f");
  expect_same_planes(want, quantize("0000807f0000803f"));
}

// Other producers' files may have a zero point: (q - zero_point) * scale.
TEST(Int8Row, ZeroPointIsTakenOffTheCode) {
  const Planes planes = {{"qdata", DType::int8, {1, 2}, from_hex("7f80")},
                         {"scale", DType::float32, {1, 1}, from_hex("0000003f")},
                         {"zero_point", DType::int8, {1, 1}, from_hex("80")}};
  // 127 + 128 and -128 + 128, times 0.5
  EXPECT_EQ(to_hex(int8_scheme().dequantize(planes, {DType::bfloat16, 1, 2})), "ff420000");
  std::vector<ExactWeight> row(2);
  int8_scheme().exact_row(planes, {DType::bfloat16, 1, 2}, 0, row);
  EXPECT_EQ(row[0].product, 127.5);
  EXPECT_EQ(row[0].code, 255);
}

TEST(Int8Row, PlacesAreRowsAndColumns) {
  const WeightShape shape = {DType::bfloat16, 4, 10};
  EXPECT_EQ(int8_scheme().place(shape, kPlain, "qdata", 37), "row 3, k 7");
  EXPECT_EQ(int8_scheme().place(shape, kPlain, "scale", 9), "row 2");
  EXPECT_EQ(int8_scheme().place(shape, kPlain, "zero_point", 3), "row 3");
}

}  // namespace
}  // namespace qcts
