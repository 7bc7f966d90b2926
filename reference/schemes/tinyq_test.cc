// Recorded from TinyQ 006b7b9 on torch 2.13.0: the quantize() of both layers on one row, and q.float() * s in
// the layer's dtype.
#include "reference/schemes/testing.h"

namespace qcts {
namespace {

struct Recorded {
  const char* scheme;
  RecordedRow row;
};

class TinyqRecorded : public testing::TestWithParam<Recorded> {};

Plane recorded_plane(const PlaneSpec& spec, const char* hex) {
  return {spec.name, spec.dtype, spec.shape, from_hex(hex)};
}

TEST_P(TinyqRecorded, QuantizesAsTinyQ) {
  const Scheme& scheme = *find_scheme(GetParam().scheme);
  const RecordedRow& row = GetParam().row;
  const std::vector<PlaneSpec> specs = scheme.plane_specs(row_shape(row), "plain");
  Planes want = {recorded_plane(specs[0], row.qdata), recorded_plane(specs[1], row.scale)};
  if (specs.size() == 3) want.push_back(recorded_plane(specs[2], "00000000"));
  expect_same_planes(want, quantize_row(scheme, row));
}

TEST_P(TinyqRecorded, MeansCodeTimesScale) {
  const Scheme& scheme = *find_scheme(GetParam().scheme);
  const RecordedRow& row = GetParam().row;
  const PlaneSpec spec = {"weight", row.dtype, {1, row_shape(row).k}};
  const Plane got = {"weight", row.dtype, spec.shape,
                     scheme.dequantize(quantize_row(scheme, row), row_shape(row))};
  expect_same_planes({recorded_plane(spec, row.dequantized)}, {got});
}

INSTANTIATE_TEST_SUITE_P(
    TinyQ, TinyqRecorded,
    testing::Values(
        Recorded{"tinyq_w8a32",
                 {"unit_float32", DType::float32,
                  "0000803f000080bf0000003f000000000000803e000000beabaaaa3eabaa2abf", "7f81400020f02aab",
                  "0402013c", "0000803f000080bf0402013f000000000402813e040201bea552a93ead562bbf"}},
        Recorded{"tinyq_w8a32",
                 {"halfway_float32", DType::float32,
                  "0000fe420000003f0000c03f00002040000000bf0000c0bf0000fdc200008142", "7f00020200fe8240",
                  "0000803f", "0000fe4200000000000000400000004000000000000000c00000fcc200008042"}},
        Recorded{"tinyq_w8a32",
                 {"wrap_float32", DType::float32,
                  "00003e3f00003ebf0000003f3333333fcdcccc3d9a9999be9a99193f48e13a3f", "7f81567811cd677d",
                  "fe7ebf3b", "00003e3f00003ebf53a9003f0e87333fee76cb3d329998be30181a3f04023b3f"}},
        Recorded{"tinyq_w8a32",
                 {"zeros_float32", DType::float32,
                  "0000000000000080000000000000000000000000000000000000000000000000", "0000000000000000",
                  "00000000", "0000000000000000000000000000000000000000000000000000000000000000"}},
        Recorded{"tinyq_w8a32",
                 {"tiny_float32", DType::float32,
                  "95bf563459d900b459d980330646413495bf56b40000000095bfd63395bf5633", "7fb4267281004020",
                  "7670d830", "95bf5634c68200b4c682803329c4403495bf56b4000000007670d83376705833"}},
        Recorded{"tinyq_w8a32",
                 {"tiniest_float32", DType::float32,
                  "59d9803359d980b3000000000000000059d98033000000000000000000000000", "7f8100007f000000",
                  "13dd0130", "59d9803359d980b3000000000000000059d98033000000000000000000000000"}},
        Recorded{"tinyq_w8a32",
                 {"nan_float32", DType::float32,
                  "0000803f0000c07f0000004000000000000000000000000000000000000080bf", "0000000000000000",
                  "ffffffff", "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"}},
        Recorded{"tinyq_w8a32",
                 {"inf_float32", DType::float32,
                  "0000803f0000807f000000400000000000000000000080ff00000000000080bf", "0000000000000000",
                  "0000807f", "0000c0ff0000c0ff0000c0ff0000c0ff0000c0ff0000c0ff0000c0ff0000c0ff"}},
        Recorded{"tinyq_w8a32",
                 {"largest_float32", DType::float32,
                  "e6b1617fe6b161ff9976967e0000803f000000000050434700e87dc76f12833a", "7f812a0000000000",
                  "d878e37b", "e6b1617fe6b161ff4e47957e0000000000000000000000000000000000000000"}},
        Recorded{"tinyq_w8a16",
                 {"unit_float32", DType::float32,
                  "0000803f000080bf0000003f000000000000803e000000beabaaaa3eabaa2abf", "7f81400020f02aab",
                  "0402013c", "0000803f000080bf0402013f000000000402813e040201bea552a93ead562bbf"}},
        Recorded{"tinyq_w8a16",
                 {"unit_float16", DType::float16, "003c00bc00380000003400b0553555b9", "7f81400020f02aab",
                  "0820", "003c00bc08380000083408b04a355bb9"}},
        Recorded{"tinyq_w8a16",
                 {"unit_bfloat16", DType::bfloat16, "803f80bf003f0000803e00beab3e2bbf", "7f81400020f02aab",
                  "013c", "803f80bf013f0000813e01bea93e2bbf"}},
        Recorded{"tinyq_w8a16",
                 {"halfway_float32", DType::float32,
                  "0000fe420000003f0000c03f00002040000000bf0000c0bf0000fdc200008142", "7f00020200fe8240",
                  "0000803f", "0000fe4200000000000000400000004000000000000000c00000fcc200008042"}},
        Recorded{"tinyq_w8a16",
                 {"halfway_float16", DType::float16, "f0570038003e004100b800bee8d70854", "7f00020200fe8240",
                  "003c", "f057000000400040000000c0e0d70054"}},
        Recorded{"tinyq_w8a16",
                 {"halfway_bfloat16", DType::bfloat16, "fe42003fc03f204000bfc0bffdc28142", "7f00020200fe8240",
                  "803f", "fe42000000400040000000c0fcc28042"}},
        Recorded{"tinyq_w8a16",
                 {"wrap_float32", DType::float32,
                  "00003e3f00003ebf0000003f3333333fcdcccc3d9a9999be9a99193f48e13a3f", "7f81567811cd677d",
                  "fe7ebf3b", "00003e3f00003ebf53a9003f0e87333fee76cb3d329998be30181a3f04023b3f"}},
        Recorded{"tinyq_w8a16",
                 {"wrap_float16", DType::float16, "f039f0b900389a39662ecdb4cd38d739", "7f81567811cd677d",
                  "fc1d", "f039f0b905389c395c2ec5b4d138d839"}},
        Recorded{"tinyq_w8a16",
                 {"wrap_bfloat16", DType::bfloat16, "3e3f3ebf003f333fcd3d9abe1a3f3b3f", "8080567811cc677e",
                  "bf3b", "3fbf3fbf003f333fcb3d9bbe1a3f3c3f"}},
        Recorded{"tinyq_w8a16",
                 {"zeros_float32", DType::float32,
                  "0000000000000080000000000000000000000000000000000000000000000000", "0000000000000000",
                  "00000000", "0000000000000000000000000000000000000000000000000000000000000000"}},
        Recorded{"tinyq_w8a16",
                 {"zeros_float16", DType::float16, "00000080000000000000000000000000", "0000000000000000",
                  "0000", "00000000000000000000000000000000"}},
        Recorded{"tinyq_w8a16",
                 {"zeros_bfloat16", DType::bfloat16, "00000080000000000000000000000000", "0000000000000000",
                  "0000", "00000000000000000000000000000000"}},
        Recorded{"tinyq_w8a16",
                 {"tiny_float32", DType::float32,
                  "95bf563459d900b459d980330646413495bf56b40000000095bfd63395bf5633", "7fb4267281004020",
                  "7670d830", "95bf5634c68200b4c682803329c4403495bf56b4000000007670d83376705833"}},
        Recorded{"tinyq_w8a16",
                 {"tiny_float16", DType::float16, "03000280010003000380000002000100", "0000000000000000",
                  "0000", "00000000000000000000000000000000"}},
        Recorded{"tinyq_w8a16",
                 {"tiny_bfloat16", DType::bfloat16, "573401b48133413457b40000d7335733", "7fb4267281004020",
                  "d930", "573401b48133413457b40000d9335933"}},
        Recorded{"tinyq_w8a16",
                 {"tiniest_float32", DType::float32,
                  "59d9803359d980b3000000000000000059d98033000000000000000000000000", "7f8100007f000000",
                  "13dd0130", "59d9803359d980b3000000000000000059d98033000000000000000000000000"}},
        Recorded{"tinyq_w8a16",
                 {"tiniest_float16", DType::float16, "01000180000000000100000000000000", "0000000000000000",
                  "0000", "00000000000000000000000000000000"}},
        Recorded{"tinyq_w8a16",
                 {"tiniest_bfloat16", DType::bfloat16, "813381b3000000008133000000000000", "7f8100007f000000",
                  "0230", "813381b3000000008133000000000000"}},
        Recorded{"tinyq_w8a16",
                 {"nan_float32", DType::float32,
                  "0000803f0000c07f0000004000000000000000000000000000000000000080bf", "0000000000000000",
                  "0000c07f", "0000c07f0000c07f0000c07f0000c07f0000c07f0000c07f0000c07f0000c07f"}},
        Recorded{"tinyq_w8a16",
                 {"nan_float16", DType::float16, "003c007e0040000000000000000000bc", "0000000000000000",
                  "007e", "ff7fff7fff7fff7fff7fff7fff7fff7f"}},
        Recorded{"tinyq_w8a16",
                 {"nan_bfloat16", DType::bfloat16, "803fc07f0040000000000000000080bf", "0000000000000000",
                  "ffff", "ffffffffffffffffffffffffffffffff"}},
        Recorded{"tinyq_w8a16",
                 {"inf_float32", DType::float32,
                  "0000803f0000807f000000400000000000000000000080ff00000000000080bf", "0000000000000000",
                  "0000807f", "0000c0ff0000c0ff0000c0ff0000c0ff0000c0ff0000c0ff0000c0ff0000c0ff"}},
        Recorded{"tinyq_w8a16",
                 {"inf_float16", DType::float16, "003c007c00400000000000fc000000bc", "0000000000000000",
                  "007c", "00fe00fe00fe00fe00fe00fe00fe00fe"}},
        Recorded{"tinyq_w8a16",
                 {"inf_bfloat16", DType::bfloat16, "803f807f00400000000080ff000080bf", "0000000000000000",
                  "807f", "ffffffffffffffffffffffffffffffff"}},
        Recorded{"tinyq_w8a16",
                 {"largest_float32", DType::float32,
                  "e6b1617fe6b161ff9976967e0000803f000000000050434700e87dc76f12833a", "7f812a0000000000",
                  "d878e37b", "e6b1617fe6b161ff4e47957e0000000000000000000000000000000000000000"}},
        Recorded{"tinyq_w8a16",
                 {"largest_float16", DType::float16, "007c00fc007c003c00001a7aeffb1914", "0000000000000000",
                  "007c", "00fe00fe00fe00fe00fe00fe00fe00fe"}},
        Recorded{"tinyq_w8a16",
                 {"largest_bfloat16", DType::bfloat16, "627f62ff967e803f000043477ec7833a", "7f812a0000000000",
                  "e47b", "627f62ff967e00000000000000000000"}}),
    [](const testing::TestParamInfo<Recorded>& info) {
      return std::string(info.param.scheme) + "_" + info.param.row.name;
    });

TEST(Tinyq, WrapsTheLargestWeightThatW8A32Clamps) {
  // bfloat16 rounds max|w| / 127 down, so that max|w| / scale rounds to 128.
  const RecordedRow row = {"wrap", DType::bfloat16, "3e3f3ebf", "", "", nullptr};
  EXPECT_EQ(to_hex(plane(quantize_row(*find_scheme("tinyq_w8a16"), row), "int8_weights").bytes), "8080");
}

TEST(Tinyq, TakesTheDtypesOfItsLayers) {
  EXPECT_TRUE(find_scheme("tinyq_w8a32")->refusal({DType::bfloat16, 4, 8}, "plain").has_value());
  EXPECT_FALSE(find_scheme("tinyq_w8a16")->refusal({DType::bfloat16, 4, 8}, "plain").has_value());
  EXPECT_TRUE(find_scheme("tinyq_w8a16")->refusal({DType::bfloat16, 0, 8}, "plain").has_value());
}

}  // namespace
}  // namespace qcts
