// Recorded from torchao 0.18.0 on torch 2.13.0, x86: Float8Tensor.from_hp(w) and its dequantize().
#include "reference/schemes/testing.h"

namespace qcts {
namespace {

const Scheme& scheme() { return *find_scheme("fp8_row"); }

class Fp8RowRecorded : public testing::TestWithParam<RecordedRow> {};

TEST_P(Fp8RowRecorded, QuantizesAsTorchao) {
  expect_same_planes(
      {{"qdata", DType::float8_e4m3fn, {1, row_shape(GetParam()).k}, from_hex(GetParam().qdata)},
       {"scale", DType::float32, {1, 1}, from_hex(GetParam().scale)}},
      quantize_row(scheme(), GetParam()));
}

TEST_P(Fp8RowRecorded, DequantizesAsTorchao) {
  const WeightShape shape = row_shape(GetParam());
  const std::vector<std::byte> got = scheme().dequantize(quantize_row(scheme(), GetParam()), shape);
  expect_same_planes({{"w", shape.dtype, {shape.n, shape.k}, from_hex(GetParam().dequantized)}},
                     {{"w", shape.dtype, {shape.n, shape.k}, got}});
}

INSTANTIATE_TEST_SUITE_P(
    Torchao, Fp8RowRecorded,
    testing::Values(
        RecordedRow{"unit_float32", DType::float32,
                    "0000803f000080bf0000003f000000000000803e000000beabaaaa3eabaa2abf", "7efe76006ee671f9",
                    "2549123b", "0000803f000080bf0000003f000000000000803e000000be4a92a43e4a9224bf"},
        RecordedRow{"halfway_float32", DType::float32,
                    "0000ff420000ffc20000003f0000c03f00002040000000bf0000c0bf0000fd42", "7efe3e4b51becb7e",
                    "dbb6913e", "fffffe42fffffec2fffffe3e6d5bc83fb6ed2340fffffebe6d5bc8bffffffe42"},
        RecordedRow{"negative_extreme_float32", DType::float32,
                    "000041c0000040400000803f000080bf0000803d000080bd00000040000000c0", "fe7e71f151d179f9",
                    "4992dc3b", "000041c0000041409224783f922478bf9224783d922478bd9224f83f9224f8bf"},
        RecordedRow{"zeros_float32", DType::float32,
                    "0000000000000080000000000000000000000000000000000000000000000000", "ffffffffffffffff",
                    "00000000", "0000f0ff0000f0ff0000f0ff0000f0ff0000f0ff0000f0ff0000f0ff0000f0ff"},
        RecordedRow{"largest_float32", DType::float32,
                    "ffff7f7fffff7fffffffff7e0000803f00000000000080bfaaaaaa7ecccc4cfe", "7efe7600008071eb",
                    "2449127b", "ffff7f7fffff7fffffffff7e0000000000000000000000804892a47e922449fe"},
        RecordedRow{"subnormal_float32", DType::float32,
                    "000020000000408000000200000000000000800095bfd6330000000000000000", "00800000007e0000",
                    "3d6d752f", "000000000000008000000000000000000000000095bfd6330000000000000000"},
        RecordedRow{"fp8_ties_float32", DType::float32,
                    "0000e0430000884100009841000088bf000098bf0000803a0000403b0000a0bb", "7e585ab8ba000282",
                    "0000803f", "0000e043000080410000a041000080bf0000a0bf000000000000803b000080bb"},
        RecordedRow{"unit_float16", DType::float16, "003c00bc00380000003400b0553555b9", "7efe76006ee671f9",
                    "0040123b", "003c00bc00380000003400b0243524b9"},
        RecordedRow{"halfway_float16", DType::float16, "f857f8d70038003e004100b800bee857", "7efe3e4b51becb7e",
                    "00c0913e", "f857f8d7f837433e2041f8b743bef857"},
        RecordedRow{"negative_extreme_float16", DType::float16, "08c20042003c00bc002c00ac004000c0",
                    "fe7e71f151d179f9", "00a0dc3b", "08c20842c23bc2bbc22bc2abc23fc2bf"},
        RecordedRow{"zeros_float16", DType::float16, "00000080000000000000000000000000", "ffffffffffffffff",
                    "00000000", "80ff80ff80ff80ff80ff80ff80ff80ff"},
        RecordedRow{"largest_float16", DType::float16, "ff7bfffbff77003c000000bc557566f2", "7efe7604008471eb",
                    "00401243", "007c00fc0078923c000092bc247549f2"},
        RecordedRow{"subnormal_float16", DType::float16, "00010082100000000004010000000000",
                    "70f850007e300000", "00000034", "00010082100000008003010000000000"},
        RecordedRow{"fp8_ties_float16", DType::float16, "005f404cc04c40bcc0bc0014001a009d",
                    "7e585ab8ba000282", "0000803f", "005f004c004d00bc00bd0000001c009c"},
        RecordedRow{"unit_bfloat16", DType::bfloat16, "803f80bf003f0000803e00beab3e2bbf", "7efe76006ee671f9",
                    "0000123b", "803f80bf003f0000803e00bea43e24bf"},
        RecordedRow{"halfway_bfloat16", DType::bfloat16, "ff42ffc2003fc03f204000bfc0bffd42",
                    "7efe3e4b51becb7e", "0000923e", "004300c3003fc93f244000bfc9bf0043"},
        RecordedRow{"negative_extreme_bfloat16", DType::bfloat16, "41c04040803f80bf803d80bd004000c0",
                    "fe7e71f151d179f9", "0000dd3b", "41c04140793f79bf793d79bdf93ff9bf"},
        RecordedRow{"zeros_bfloat16", DType::bfloat16, "00000080000000000000000000000000", "ffffffffffffffff",
                    "00000000", "ffffffffffffffffffffffffffffffff"},
        RecordedRow{"largest_bfloat16", DType::bfloat16, "7f7f7fffff7e803f000080bfaa7e4cfe",
                    "7efe7600008071eb", "0000127b", "807f80ff007f000000000080a47e49fe"},
        RecordedRow{"subnormal_bfloat16", DType::bfloat16, "20004080020000008000d73300000000",
                    "00800000007e0000", "0000762f", "00000080000000000000d73300000000"},
        RecordedRow{"fp8_ties_bfloat16", DType::bfloat16, "e0438841984188bf98bf803a403ba0bb",
                    "7e585ab8ba000282", "0000803f", "e0438041a04180bfa0bf0000803b80bb"}),
    row_name);

// fp8_zero_row_nan: the NaN codes of a row of zeros carry the sign that x86 gives to 0/0.
TEST(Fp8Row, ZeroRowHoldsTheBytesThatTorchaoWrites) {
  const Planes planes = scheme().quantize({DType::bfloat16, 1, 3, from_hex("000000800000")});
  EXPECT_EQ(to_hex(plane(planes, "qdata").bytes), "ffffff");
  EXPECT_EQ(to_hex(plane(planes, "scale").bytes), "00000000");
}

TEST(Fp8Row, PlacesAreRowsAndColumns) {
  EXPECT_EQ(scheme().place({DType::bfloat16, 4, 10}, "plain", "qdata", 37), "row 3, k 7");
  EXPECT_EQ(scheme().place({DType::bfloat16, 4, 10}, "plain", "scale", 9), "row 2");
}

}  // namespace
}  // namespace qcts
