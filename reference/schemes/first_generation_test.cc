// Recorded from quant_api.py of torchao 0.5.0 (dyn_token_asym_eps), 0.9.0 (dyn_token_sym_127,
// dyn_token_sym_b4), 0.11.0 (float8) and 0.13.0 (the rest) on torch 2.13.0, x86: six rows of x with a largest
// that makes ties, infinities, a NaN, zeros, values below every least scale, and positive ones alone.
#include <limits>

#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/testing.h"

namespace qcts {
namespace {

constexpr int64_t kRows = 6, kColumns = 8;

std::vector<std::byte> rows_of(DType dtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNan = std::numeric_limits<double>::quiet_NaN();
  const double values[kRows * kColumns] = {
      3.0625, 0.177734375, -0.1640625, 1.1015625, -2.96875, 0.01904296875,
      -0.0,   1e-3,  //
      kInf,   1,           -1,         0,         -0.0,     -kInf,
      2,      0.5,  //
      kNan,   1,           -1,         0,         0.5,      kInf,
      2,      -3,  //
      0,      0,           -0.0,       0,         0,        0,
      0,      0,  //
      3e-7,   -1e-7,       2e-7,       0,         1e-7,     -3e-7,
      2.5e-7, 1e-8,  //
      5,      4.99,        1,          0.5,       0.25,     3,
      2,      1.5};
  std::vector<std::byte> bytes(std::size(values) * dtype_bytes(dtype));
  for (size_t i = 0; i < std::size(values); ++i) store_float(dtype, bytes, i, values[i]);
  return bytes;
}

struct RecordedX {
  const char* scheme;
  const char* policy;
  DType dtype;
  const char* qdata;
  const char* scale;
  const char* zero_point;  // empty: none, which is 0
};

class FirstGeneration : public testing::TestWithParam<RecordedX> {};

TEST_P(FirstGeneration, QuantizesActivationsAsTheOldWheels) {
  const RecordedX& recorded = GetParam();
  const Scheme& scheme = *find_scheme(recorded.scheme);
  const std::vector<std::byte> bytes = rows_of(recorded.dtype);
  const Matrix x = {recorded.dtype, kRows, kColumns, bytes};
  Planes want = make_planes(scheme.activation_specs(x, recorded.policy));
  for (Plane& plane : want) {
    const char* hex = plane.name == "qdata"   ? recorded.qdata
                      : plane.name == "scale" ? recorded.scale
                                              : recorded.zero_point;
    if (*hex) plane.bytes = from_hex(hex);
  }
  expect_same_planes(want, scheme.quantize_activation(x, recorded.policy, {}));
}

INSTANTIATE_TEST_SUITE_P(
    Torchao, FirstGeneration,
    testing::Values(RecordedX{"intx_b4_g32_sym", "dyn_token_asym_eps", DType::float32,
                              "7f06f72d80fffefe00000000000000000000000000000000808080808080808086828583848085"
                              "837f7eb39a8d19e6cc",
                              "c2c1c13c0000807f0000c07f0000003400000034a1a0a03c", "fe0000808380"},
                    RecordedX{"intx_b4_g32_sym", "dyn_token_asym_eps", DType::bfloat16,
                              "7f06f72c80fffefe00000000000000000000000000000000808080808080808080808080808080"
                              "807f7fb39a8d19e6cc",
                              "c23c807fc07f003c003ca13c", "fe0000808080"},
                    RecordedX{"intx_b4_g32_sym", "dyn_token_asym_eps", DType::float16,
                              "7f06f72d80fffefe00000000000000000000000000000000808080808080808080808080808080"
                              "807f7eb39a8d19e6cc",
                              "0e26007c007e001400140525", "fe0000808080"},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_127", DType::float32,
                              "7f07f92e8501000000000000000000000000000000000000000000000000000000000000000000"
                              "007f7f190d064c3326",
                              "168bc53c0000807f0000c07facc52737acc527378542213d", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_127", DType::bfloat16,
                              "7e07f92e8601000000000000000000000000000000000000000000000000000000000000000000"
                              "007f7f1a0d064c3326",
                              "c63c807fc07f28372837213d", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_127", DType::float16,
                              "7f07f92e850100000000000000000000000000000000000000000000000000007f817f007f817f"
                              "007f7f190d064c3326",
                              "2c26007c007ea800a8000a29", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_b4", DType::float32,
                              "07000003f900000000000000000000000000000000000000000000000000000000000000000000"
                              "000707020100040302",
                              "1111d13e0000807f0000c07facc52737acc52737abaa2a3f", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_b4", DType::bfloat16,
                              "07000003f900000000000000000000000000000000000000000000000000000000000000000000"
                              "000707020100040302",
                              "d13e807fc07f283728372b3f", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_b4", DType::float16,
                              "07000003f900000000000000000000000000000000000000000000000000000007f8070007f807"
                              "000707020100040302",
                              "8936007c007ea800a8005539", ""},
                    RecordedX{"fp8_row", "dyn_row_recip", DType::float32,
                              "7e5ddc72fe438021ff00800080ff00007f7f7f7f7f7f7f7f000080000000000042b53d0035c240"
                              "1b7e7e6b635b787370",
                              "0000e03b0000807f0000c07f00000034000000346edb363c", ""},
                    RecordedX{"fp8_row", "dyn_row_recip", DType::bfloat16,
                              "7e5ddc72fe438021ff00800080ff00007f7f7f7f7f7f7f7f000080000000000042b53d0035c240"
                              "1b7e7e6b635b787370",
                              "0000e03b0000807f0000c07f00000034000000340000373c", ""},
                    RecordedX{"fp8_row", "dyn_row_recip", DType::float16,
                              "7e5ddc72fe438021ff00800080ff00007f7f7f7f7f7f7f7f000080000000000042b83c0038c240"
                              "007e7e6b635b787370",
                              "0000e03b0000807fffffff7f000000340000003400e0363c", ""},
                    RecordedX{"fp8_e5m2_row", "dyn_row_recip", DType::float32,
                              "7b6bea75fb5e804dff00800080ff00007f7f7f7f7f7f7f7f000080000000000041bb3f003bc140"
                              "2d7b7b726e6a787674",
                              "000060380000807f0000c07f00000034000000346edbb638", ""},
                    RecordedX{"fp8_e5m2_row", "dyn_row_recip", DType::bfloat16,
                              "7b6bea75fb5e804dff00800080ff00007f7f7f7f7f7f7f7f000080000000000041bb3f003bc140"
                              "2d7b7b726e6a787674",
                              "000060380000807f0000c07f00000034000000340000b738", ""},
                    RecordedX{"fp8_e5m2_row", "dyn_row_recip", DType::float16,
                              "7b6bea75fb5e804dff00800080ff00007f7f7f7f7f7f7f7f000080000000000041bc3e003cc140"
                              "007b7b726e6a787674",
                              "000060380000807fffffff7f000000340000003400e0b638", ""},
                    RecordedX{"intx_b4_g32_sym", "dyn_token_sym_127_s32", DType::float32,
                              "7f07f92e8501000000000000000000000000000000000000000000000000000000000000000000"
                              "007f7f190d064c3326",
                              "168bc53c0000807f0000c07facc52737acc527378542213d", "000000000000"},
                    RecordedX{"intx_b4_g32_sym", "dyn_token_sym_127_s32", DType::bfloat16,
                              "7f07f92e8501000000000000000000000000000000000000000000000000000000000000000000"
                              "007f7f190d064c3326",
                              "0000c63c0000807f0000c07f00002837000028370000213d", "000000000000"},
                    RecordedX{"intx_b4_g32_sym", "dyn_token_sym_127_s32", DType::float16,
                              "7f07f92e8501000000000000000000000000000000000000000000000000000000000000000000"
                              "007f7f190d064c3326",
                              "0080c53c0000807fffffff7f00002837000028370040213d", "000000000000"},
                    RecordedX{"intx_b4_g32_sym", "dyn_token_asym_u8_s32", DType::float32,
                              "ff8677ad007f7e7e00000000000000000000000000000000000000000000000006020503040005"
                              "03fffe331a0d99664c",
                              "c2c1c13c0000807f0000c07f0000003400000034a1a0a03c", "7e0000000300"},
                    RecordedX{"intx_b4_g32_sym", "dyn_token_asym_u8_s32", DType::bfloat16,
                              "ff8677ad017f7e7e00000000000000000000000000000000000000000000000006020503040005"
                              "03fefe33190d99664c",
                              "0000c23c0000807f0000c07f00000034000000340000a13c", "7e0000000300"},
                    RecordedX{"intx_b4_g32_sym", "dyn_token_asym_u8_s32", DType::float16,
                              "ff8677ad007f7e7e00000000000000000000000000000000000000000000000004010402030004"
                              "02fffe331a0d99664d",
                              "00c0c13c0000807fffffff7f000000340000003400a0a03c", "7e0000000200"},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_s32", DType::float32,
                              "7f07f92e8401000000000000000000000000000000000000000000000000000003ff020001fd02"
                              "007f7f1a0d064c3326",
                              "c5c4c43c0000807f0000c07f0000003400000034a1a0203d", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_s32", DType::bfloat16,
                              "7f07f92e8501000000000000000000000000000000000000000000000000000003ff020001fd02"
                              "007f7f190d064c3326",
                              "0000c53c0000807f0000c07f00000034000000340000213d", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_s32", DType::float16,
                              "7f07f92e8401000000000000000000000000000000000000000000000000000002ff020001fe02"
                              "007f7f1a0d064d3326",
                              "00c0c43c0000807fffffff7f000000340000003400a0203d", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_b4_s32", DType::float32,
                              "07000003f900000000000000000000000000000000000000000000000000000003ff020001fd02"
                              "000707020100040302",
                              "1111d13e0000807f0000c07f0000003400000034abaa2a3f", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_b4_s32", DType::bfloat16,
                              "07000003f900000000000000000000000000000000000000000000000000000003ff020001fd02"
                              "000707010100040302",
                              "0000d13e0000807f0000c07f000000340000003400002b3f", ""},
                    RecordedX{"intx_b4_axis_sym", "dyn_token_sym_b4_s32", DType::float16,
                              "07000003f900000000000000000000000000000000000000000000000000000002ff020001fe02"
                              "000707020100050302",
                              "0020d13e0000807fffffff7f000000340000003400a02a3f", ""}),
    [](const auto& info) {
      return std::string(info.param.scheme) + "_" + info.param.policy + "_" +
             std::string(dtype_name(info.param.dtype));
    });

// fbgemm's bound comes first and its floor last: with upper < 1/512 they are not MSLK's.
TEST(Float8Bounded, FloorsAfterTheBound) {
  constexpr float kLeast = 1.0f / (512 * 448);
  EXPECT_EQ(float8_scale_bounded(DType::float8_e4m3fn, 3, 1.5f), 1.5f / 448);
  EXPECT_EQ(float8_scale_bounded(DType::float8_e4m3fn, 3, 1200), float8_scale_floored(3, 1200.0f));
  EXPECT_EQ(float8_scale_bounded(DType::float8_e4m3fn, 0, 1200), kLeast);
  EXPECT_EQ(float8_scale_bounded(DType::float8_e4m3fn, 3, 0x1p-12f), kLeast);
  EXPECT_LT(float8_scale_floored(3, 0x1p-12f), kLeast);
}

// A layer's own scale, given, and an x that lies halfway between two codes: the quotient ends in the even
// one, the product with the reciprocal in the other.
TEST(Float8Static, MultipliesByTheReciprocalUpTo011) {
  constexpr float kScale = 7.0f / 1024, kX = 25 * kScale / 16;
  const Scheme& scheme = *find_scheme("fp8_e4m3_tensor");
  Planes stored = make_planes(scheme.policy_specs({DType::float32, 1, 1}, "static_tensor_recip"));
  store_float(DType::float32, stored[0].bytes, 0, kScale);
  std::vector<std::byte> bytes(4);
  store_float(DType::float32, bytes, 0, kX);
  const auto value = [&](std::string_view policy) {
    const Planes planes = scheme.quantize_activation({DType::float32, 1, 1, bytes}, policy, stored);
    EXPECT_EQ(plane(planes, "scale").bytes, stored[0].bytes);
    return load_float(DType::float8_e4m3fn, plane(planes, "qdata").bytes, 0);
  };
  EXPECT_EQ(value("static_tensor"), 1.5);
  EXPECT_EQ(value("static_tensor_recip"), 1.625);
}

}  // namespace
}  // namespace qcts
