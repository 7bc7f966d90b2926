// SPDX-License-Identifier: BSD-3-Clause
// Tests recorded_activations.inc on six rows of x: a maximum that makes ties, infinities, a NaN, zeros,
// values below every minimum scale, and only positive values.
#include <limits>

#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/recorded/testing.h"

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
  const char* zero_point;  // empty: none, meaning 0
};

class FirstGeneration : public testing::TestWithParam<RecordedX> {};

TEST_P(FirstGeneration, QuantizesActivationsAsTheOldWheels) {
  const RecordedX& recorded = GetParam();
  const Scheme& scheme = *find_scheme(recorded.scheme);
  const std::vector<std::byte> bytes = rows_of(recorded.dtype);
  const Matrix x = {recorded.dtype, kRows, kColumns, bytes};
  Planes want = make_planes(scheme.activation_specs(x, scheme.policy_named(recorded.policy)));
  for (Plane& plane : want) {
    const char* hex = plane.name == "qdata"   ? recorded.qdata
                      : plane.name == "scale" ? recorded.scale
                                              : recorded.zero_point;
    if (*hex) plane.bytes = from_hex(hex);
  }
  expect_same_planes(want, scheme.quantize_activation(x, scheme.policy_named(recorded.policy), {}));
}

constexpr RecordedX kRecorded[] = {
#define QCTS_X(scheme, policy, dtype, ...) {#scheme, #policy, DType::dtype, __VA_ARGS__},
#include "reference/schemes/recorded/recorded_activations.inc"
#undef QCTS_X
};
INSTANTIATE_TEST_SUITE_P(Torchao, FirstGeneration, testing::ValuesIn(kRecorded), [](const auto& info) {
  return std::string(info.param.scheme) + "_" + info.param.policy + "_" +
         std::string(dtype_name(info.param.dtype));
});

// fbgemm applies its bound first and its floor last, so for upper < 1/512 it differs from MSLK.
TEST(Float8Bounded, FloorsAfterTheBound) {
  constexpr float kMin = 1.0f / (512 * 448);
  EXPECT_EQ(float8_scale_bounded(DType::float8_e4m3fn, 3, 1.5f), 1.5f / 448);
  EXPECT_EQ(float8_scale_bounded(DType::float8_e4m3fn, 3, 1200), float8_scale_floored(3, 1200.0f));
  EXPECT_EQ(float8_scale_bounded(DType::float8_e4m3fn, 0, 1200), kMin);
  EXPECT_EQ(float8_scale_bounded(DType::float8_e4m3fn, 3, 0x1p-12f), kMin);
  EXPECT_LT(float8_scale_floored(3, 0x1p-12f), kMin);
}

// With a layer's given scale and an x halfway between two codes, the quotient rounds to the even one, the
// product with the reciprocal to the other.
TEST(Float8Static, MultipliesByTheReciprocalUpTo011) {
  constexpr float kScale = 7.0f / 1024, kX = 25 * kScale / 16;
  const Scheme& scheme = *find_scheme("fp8_e4m3_tensor");
  Planes stored =
      make_planes(scheme.policy_specs({DType::float32, 1, 1}, scheme.policy_named("static_tensor_recip")));
  store_float(DType::float32, stored[0].bytes, 0, kScale);
  std::vector<std::byte> bytes(4);
  store_float(DType::float32, bytes, 0, kX);
  const auto value = [&](std::string_view policy) {
    const Planes planes =
        scheme.quantize_activation({DType::float32, 1, 1, bytes}, scheme.policy_named(policy), stored);
    EXPECT_EQ(plane(planes, "scale").bytes, stored[0].bytes);
    return load_float(DType::float8_e4m3fn, plane(planes, "qdata").bytes, 0);
  };
  EXPECT_EQ(value("static_tensor"), 1.5);
  EXPECT_EQ(value("static_tensor_recip"), 1.625);
}

}  // namespace
}  // namespace qcts
