// Recorded from torchao 0.18.0 on torch 2.13.0: Int8Tensor.from_hp(w, PerRow()) and its dequantize().
#include "reference/schemes/testing.h"

namespace qcts {
namespace {

const Scheme& int8_scheme() { return *find_scheme("int8_row"); }

class Int8RowRecorded : public testing::TestWithParam<RecordedRow> {};

TEST_P(Int8RowRecorded, QuantizesAsTorchao) {
  const Planes planes = quantize_row(int8_scheme(), GetParam());
  EXPECT_EQ(to_hex(plane(planes, "qdata").bytes), GetParam().qdata);
  EXPECT_EQ(to_hex(plane(planes, "scale").bytes), GetParam().scale);
  EXPECT_EQ(to_hex(plane(planes, "zero_point").bytes), "00");
}

TEST_P(Int8RowRecorded, DequantizesAsTorchao) {
  EXPECT_EQ(to_hex(int8_scheme().dequantize(quantize_row(int8_scheme(), GetParam()), row_shape(GetParam()))),
            GetParam().dequantized);
}

INSTANTIATE_TEST_SUITE_P(
    Torchao, Int8RowRecorded,
    testing::Values(
        RecordedRow{"unit_float32", DType::float32,
                    "0000803f000080bf0000003f000000000000803e000000beabaaaa3eabaa2abf", "7f81400020f02aab",
                    "8180003c", "00ff7e3f00ff7ebf8180003f000000008180803e818000bea9a8a83eabaa2abf"},
        RecordedRow{"halfway_float32", DType::float32,
                    "0000ff420000ffc20000003f0000c03f00002040000000bf0000c0bf0000fd42", "7f8000020200fe7e",
                    "0000803f", "0000fe42000000c300000000000000400000004000000000000000c00000fc42"},
        RecordedRow{"negative_extreme_float32", DType::float32,
                    "000041c0000040400000803f000080bf0000803d000080bd00000040000000c0", "807f2ad603fd55ab",
                    "c2c1c13c", "c2c141c03e3e40404f4e7e3f4f4e7ebf5251913d525191bdabaa0040abaa00c0"},
        RecordedRow{"zeros_float32", DType::float32,
                    "0000000000000080000000000000000000000000000000000000000000000000", "0000000000000000",
                    "00000034", "0000000000000000000000000000000000000000000000000000000000000000"},
        RecordedRow{"largest_float32", DType::float32,
                    "ffff7f7fffff7fffffffff7e0000803f00000000000080bfaaaaaa7ecccc4cfe", "7f80400000002ae6",
                    "8080007c", "fefe7e7f000080ff8080007f000000000000000000000000a8a8a87ed0d050fe"},
        RecordedRow{"subnormal_float32", DType::float32,
                    "000020000000408000000200000000000000800095bfd6330000000000000000", "0000000000010000",
                    "00000034", "0000000000000000000000000000000000000000000000340000000000000000"},
        RecordedRow{"fp8_ties_float32", DType::float32,
                    "0000e0430000884100009841000088bf000098bf0000803a0000403b0000a0bb", "7f05050000000000",
                    "e1e06040", "1f1fdf438d8c8c418d8c8c410000000000000000000000000000000000000000"},
        RecordedRow{"unit_float16", DType::float16, "003c00bc00380000003400b0553555b9", "7f80400020f02aab",
                    "0080003c", "f83b04bc04380000043404b0453555b9"},
        RecordedRow{"halfway_float16", DType::float16, "f857f8d70038003e004100b800bee857", "7f8000020200fe7e",
                    "0000803f", "f05700d8000000400040000000c0e057"},
        RecordedRow{"negative_extreme_float16", DType::float16, "08c20042003c00bc002c00ac004000c0",
                    "807f2ad603fd55ab", "00c0c13c", "0ec20242f23bf2bb8a2c8aac054005c0"},
        RecordedRow{"zeros_float16", DType::float16, "00000080000000000000000000000000", "0000000000000000",
                    "00000034", "00000000000000000000000000000000"},
        RecordedRow{"largest_float16", DType::float16, "ff7bfffbff77003c000000bc557566f2", "7f81400000002ae7",
                    "00800044", "f87bf8fb0478000000000000457546f2"},
        RecordedRow{"subnormal_float16", DType::float16, "00010082100000000004010000000000",
                    "20c002007f000000", "00000035", "0001008210000000f803000000000000"},
        RecordedRow{"fp8_ties_float16", DType::float16, "005f404cc04c40bcc0bc0014001a009d",
                    "7f05050000000000", "00e06040", "f95e644c644c00000000000000000000"},
        RecordedRow{"unit_bfloat16", DType::bfloat16, "803f80bf003f0000803e00beab3e2bbf", "7f81400020f02aab",
                    "0000013c", "803f80bf013f0000813e01bea93e2bbf"},
        RecordedRow{"halfway_bfloat16", DType::bfloat16, "ff42ffc2003fc03f204000bfc0bffd42",
                    "7f8000020200fe7e", "0000803f", "fe4200c3000000400040000000c0fc42"},
        RecordedRow{"negative_extreme_bfloat16", DType::bfloat16, "41c04040803f80bf803d80bd004000c0",
                    "817f2ad603fd54ac", "0000c23c", "40c040407f3f7fbf923d92bdff3fffbf"},
        RecordedRow{"zeros_bfloat16", DType::bfloat16, "00000080000000000000000000000000", "0000000000000000",
                    "00000034", "00000000000000000000000000000000"},
        RecordedRow{"largest_bfloat16", DType::bfloat16, "7f7f7fffff7e803f000080bfaa7e4cfe",
                    "7f80400000002ae6", "0000007c", "7e7f80ff007f000000000000a87e50fe"},
        RecordedRow{"subnormal_bfloat16", DType::bfloat16, "20004080020000008000d73300000000",
                    "0000000000010000", "00000034", "00000000000000000000003400000000"},
        RecordedRow{"fp8_ties_bfloat16", DType::bfloat16, "e0438841984188bf98bf803a403ba0bb",
                    "7f05050000000000", "00006140", "df438d418d4100000000000000000000"}),
    row_name);

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

// Foreign files may hold a zero point: (q - zero_point) * scale.
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
  EXPECT_EQ(int8_scheme().place(shape, "plain", "qdata", 37), "row 3, k 7");
  EXPECT_EQ(int8_scheme().place(shape, "plain", "scale", 9), "row 2");
  EXPECT_EQ(int8_scheme().place(shape, "plain", "zero_point", 3), "row 3");
}

}  // namespace
}  // namespace qcts
