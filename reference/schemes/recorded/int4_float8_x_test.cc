// SPDX-License-Identifier: BSD-3-Clause
// Tests int4 weights with float8 x: the policy of int4_plain_sym, and int4_e4m3, whose files hold tables.
#include "reference/numerics/soft_float.h"
#include "reference/schemes/recorded/testing.h"

namespace qcts {
namespace {

std::vector<std::byte> float32_row(std::initializer_list<float> first, int64_t k) {
  std::vector<std::byte> bytes(static_cast<size_t>(k) * 4);
  size_t i = 0;
  for (float x : first) store_float(DType::float32, bytes, i++, x);
  return bytes;
}

// MSLK's scale: the largest magnitude, at least 1/512, over 448. In a row below that floor 2^-10 is half of
// it.
TEST(Int4Float8X, RowsOfXHaveTheirScaleAndItsFloor) {
  for (const char* name : {"int4_plain_sym_g32", "int4_plain_sym_g256", "int4_e4m3_g128"}) {
    const Scheme& scheme = *find_scheme(name);
    ASSERT_TRUE(scheme.find_activation("dyn_row_mslk").has_value()) << name;
    const Policy policy = scheme.policy_named("dyn_row_mslk");
    const auto quantized = [&](std::initializer_list<float> values) {
      const std::vector<std::byte> x = float32_row(values, 4);
      return scheme.quantize_activation({DType::float32, 1, 4, x}, policy, {});
    };
    const auto hex = [](const Planes& planes, const char* what) { return to_hex(plane(planes, what).bytes); };
    const Planes usual = quantized({448, 1, -224, 0});
    EXPECT_EQ(hex(usual, "qdata"), "7e38f600");
    EXPECT_EQ(hex(usual, "scale"), "0000803f");
    const Planes small = quantized({0x1p-10f, 0, -0x1p-10f, 0});
    EXPECT_EQ(hex(small, "qdata"), "7600f600");
    EXPECT_EQ(plane(small, "scale").bytes, plane(quantized({0, 0, 0, 0}), "scale").bytes);
    EXPECT_EQ(load_float(DType::float32, plane(small, "scale").bytes, 0), 1.0f / 512 / 448);
    std::vector<double> exact(4);
    const std::vector<std::byte> unread(16);
    scheme.exact_activation(usual, {DType::float32, 1, 4, unread}, policy, 0, exact);
    EXPECT_EQ(exact, (std::vector<double>{448, 1, -224, 0}));
  }
}

TEST(Int4Float8X, FloatingZerosTakeNoFloat8X) {
  const Scheme& scheme = *find_scheme("int4_plain_g32");
  EXPECT_EQ(scheme.find_activation("dyn_row_mslk"), std::nullopt);
  const Policy policy = find_scheme("int4_plain_sym_g32")->policy_named("dyn_row_mslk");
  EXPECT_THROW(scheme.activation_specs({DType::float32, 1, 4, {}}, policy), std::invalid_argument);
}

// Row 0: codes -7 and 7 under a group scale of 1.125 and a row scale of 0.5; row 9, k 21: code 1.
struct Tables {
  const Scheme& scheme = *find_scheme("int4_e4m3_g128");
  Layout preshuffled = scheme.layout_named("preshuffled_fp8");
  WeightShape shape = {DType::float32, 16, 128};
  Planes plain = make_planes(scheme.plane_specs(shape));
  Tables() {
    plain[0].bytes[0] = std::byte{0x79};
    plain[0].bytes[(9 * 128 + 21) / 2] = std::byte{0x10};
    plain[1].bytes[0] = std::byte{0x39};
    store_float(DType::float32, plain[2].bytes, 0, 0.5);
  }
};

// 7 * 1.125 = 7.875 has no code of e4m3: the table holds 8.
TEST(Int4E4m3, WeightsAreWhatTheTableHolds) {
  const Tables t;
  const std::vector<std::byte> dense = t.scheme.dequantize(t.plain, t.shape);
  EXPECT_EQ(load_float(DType::float32, dense, 0), -4.0);
  EXPECT_EQ(load_float(DType::float32, dense, 1), 4.0);
  EXPECT_EQ(load_float(DType::float32, dense, 2), 0.0);
}

TEST(Int4E4m3, PreshufflingKeepsSignAndPlaceInTheTable) {
  const Tables t;
  const Planes packed = t.scheme.pack(t.plain, t.shape, t.preshuffled);
  EXPECT_EQ(packed[0].bytes[0], std::byte{0x19});   // 7 is stored as 1, -7 as 9
  EXPECT_EQ(packed[0].bytes[46], std::byte{0x70});  // 1 as 7, in lane 5's fourteenth place
  EXPECT_EQ(packed[1].shape, (std::vector<int64_t>{1, 8, 16}));
  EXPECT_EQ(to_hex(std::span(packed[1].bytes).first(8)), "d1d0cecbc9c6c1b9");
  expect_same_planes(t.plain, t.scheme.unpack(packed, t.shape, t.preshuffled));
}

TEST(Int4E4m3, ATableThatNoScaleMakesIsNone) {
  const Tables t;
  Planes packed = t.scheme.pack(t.plain, t.shape, t.preshuffled);
  packed[1].bytes[1] = std::byte{0xd1};
  EXPECT_THROW(t.scheme.unpack(packed, t.shape, t.preshuffled), std::invalid_argument);
}

}  // namespace
}  // namespace qcts
