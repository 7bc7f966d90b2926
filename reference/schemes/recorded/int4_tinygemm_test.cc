// SPDX-License-Identifier: BSD-3-Clause
// Tests int4_tinygemm beyond the rows of recorded_rows.inc. Recorded from torch 2.13.0:
// aten::_convert_weight_to_int4pack_for_cpu under ATEN_CPU_CAPABILITY=avx2 and default.
#include <cmath>
#include <set>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/recorded/testing.h"

namespace qcts {
namespace {

const Scheme& g32() { return *find_scheme("int4_tinygemm_g32"); }
const Scheme& g128() { return *find_scheme("int4_tinygemm_g128"); }

// Returns a weight whose code [n, k] is (7n + 3k + nk/5) mod 16, with counted scales and zeros.
Planes patterned(const Scheme& scheme, const WeightShape& shape) {
  Planes planes = make_planes(scheme.plane_specs(shape));
  for (int64_t n = 0; n < shape.n; ++n)
    for (int64_t k = 0; k < shape.k; ++k)
      planes[0].bytes[(n * shape.k + k) / 2] |=
          static_cast<std::byte>((7 * n + 3 * k + n * k / 5) % 16 << (k % 2 == 0 ? 4 : 0));
  for (size_t i = 0; i < planes[1].bytes.size() / 2; ++i)
    store_float(DType::bfloat16, planes[1].bytes, i, static_cast<double>(i % 251));
  return planes;
}

uint64_t fnv1a(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

Layout layout_of(std::string_view name) { return g32().layout_named(name); }

struct PackCase {
  const char* layout;
  int64_t n;
  uint64_t fnv;  // hash of the op's bytes, K = 64
};
class Int4CpuPack : public testing::TestWithParam<PackCase> {};

// N = 48, 80, 144 and 176 end in a block of 16 rows, which has a different order.
TEST_P(Int4CpuPack, IsTheBytesOfTheOp) {
  const WeightShape shape = {DType::bfloat16, GetParam().n, 64};
  const Planes packed = g32().pack(patterned(g32(), shape), shape, layout_of(GetParam().layout));
  EXPECT_EQ(fnv1a(plane(packed, "qdata").bytes), GetParam().fnv);
}

INSTANTIATE_TEST_SUITE_P(
    Aten, Int4CpuPack,
    testing::Values(
        PackCase{"cpu_avx2", 16, 0x38b1d09995936025u}, PackCase{"cpu_avx2", 48, 0x630d4bc10f84accbu},
        PackCase{"cpu_avx2", 64, 0xd8616329a5972734u}, PackCase{"cpu_avx2", 80, 0x9f4e8d157a6eccf9u},
        PackCase{"cpu_avx2", 96, 0x7a300ee70f8976b9u}, PackCase{"cpu_avx2", 144, 0xe36727782e6a4c24u},
        PackCase{"cpu_avx2", 176, 0xe7b1056085503db9u}, PackCase{"cpu_default", 16, 0x38b1d09995936025u},
        PackCase{"cpu_default", 48, 0x4693dcb47b4cd63u}, PackCase{"cpu_default", 64, 0x324b8311f248c058u},
        PackCase{"cpu_default", 80, 0xfd05990c4b25be5du}, PackCase{"cpu_default", 96, 0xd438d767ae72d24du},
        PackCase{"cpu_default", 144, 0x2b1808791075d77cu}, PackCase{"cpu_default", 176, 0x46066f5df5b07e45u}),
    [](const auto& info) { return std::string(info.param.layout) + "_n" + std::to_string(info.param.n); });

struct LayoutCase {
  const char* layout;
  int64_t n, k;
};
class Int4Layout : public testing::TestWithParam<LayoutCase> {};

TEST_P(Int4Layout, UnpackIsTheInverseOfPack) {
  const WeightShape shape = {DType::bfloat16, GetParam().n, GetParam().k};
  ASSERT_EQ(g32().refusal(shape, layout_of(GetParam().layout)), std::nullopt);
  const Planes plain = patterned(g32(), shape);
  const Planes packed = g32().pack(plain, shape, layout_of(GetParam().layout));
  EXPECT_NO_THROW(require_planes(packed, g32().plane_specs(shape, layout_of(GetParam().layout))));
  expect_same_planes(plain, g32().unpack(packed, shape, layout_of(GetParam().layout)));
}

// Sets the code of every 37th weight to 15: one nibble must change, and no other weight's.
TEST_P(Int4Layout, AWeightHasANibbleOfItsOwn) {
  const WeightShape shape = {DType::bfloat16, GetParam().n, GetParam().k};
  Planes plain = make_planes(g32().plane_specs(shape));
  const Planes blank = g32().pack(plain, shape, layout_of(GetParam().layout));
  std::set<std::pair<size_t, bool>> taken;
  for (int64_t at = 0; at < shape.n * shape.k; at += 37) {
    plain[0].bytes[at / 2] = static_cast<std::byte>(at % 2 == 0 ? 0xF0 : 0x0F);
    const Planes packed = g32().pack(plain, shape, layout_of(GetParam().layout));
    plain[0].bytes[at / 2] = std::byte{0};
    size_t changed = 0;
    for (size_t i = 0; i < packed[0].bytes.size(); ++i) {
      if (packed[0].bytes[i] == blank[0].bytes[i]) continue;
      ++changed;
      ASSERT_TRUE(packed[0].bytes[i] == std::byte{0xF0} || packed[0].bytes[i] == std::byte{0x0F}) << at;
      ASSERT_TRUE(taken.emplace(i, packed[0].bytes[i] == std::byte{0xF0}).second) << at;
    }
    ASSERT_EQ(changed, 1u) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Int4Layout,
                         testing::Values(LayoutCase{"plain", 3, 96}, LayoutCase{"cpu_default", 48, 64},
                                         LayoutCase{"cpu_avx2", 16, 64}, LayoutCase{"cpu_avx2", 48, 64},
                                         LayoutCase{"cpu_avx512", 64, 64}, LayoutCase{"cpu_avx512", 80, 32},
                                         LayoutCase{"cpu_avx512", 112, 32},
                                         LayoutCase{"tile_packed_4d", 5, 96},
                                         LayoutCase{"tile_packed_4d", 16, 1056},
                                         LayoutCase{"tile_packed_4d_v1", 5, 96}),
                         [](const auto& info) {
                           return std::string(info.param.layout) + "_" + std::to_string(info.param.n) + "_" +
                                  std::to_string(info.param.k);
                         });

// aten/src/ATen/native/cpu/int4mm_kernel.cpp: with AVX-512, byte k*32 + d of a block of 64 rows is row d + 32
// above row d.
TEST(Int4Tinygemm, Avx512BlockPairsRowsThirtyTwoApart) {
  const WeightShape shape = {DType::bfloat16, 64, 32};
  const Planes plain = patterned(g32(), shape);
  const Planes packed = g32().pack(plain, shape, layout_of("cpu_avx512"));
  const auto code = [&](int64_t n, int64_t k) { return (7 * n + 3 * k + n * k / 5) % 16; };
  for (int64_t k = 0; k < 32; ++k)
    for (int64_t d = 0; d < 32; ++d)
      ASSERT_EQ(static_cast<int64_t>(packed[0].bytes[k * 32 + d]), code(d + 32, k) << 4 | code(d, k));
}

// aten/src/ATen/native/cuda/int4mm.cu matrix_to_m16n8k16_Bint4_layout, as its comment draws a word:
// v[7] | v[5] | v[3] | v[1] | v[6] | v[4] | v[2] | v[0], v being the weights k0, k0+1, k0+8, k0+9 of two k
// tiles.
TEST(Int4Tinygemm, TileWordHoldsTheEightWeightsOfALane) {
  const WeightShape shape = {DType::bfloat16, 8, 1024};
  const Planes packed = g32().pack(patterned(g32(), shape), shape, layout_of("tile_packed_4d"));
  const auto code = [&](int64_t n, int64_t k) {
    return static_cast<uint32_t>((7 * n + 3 * k + n * k / 5) % 16);
  };
  for (int64_t outer = 0; outer < 8; ++outer) {
    for (int64_t lane = 0; lane < 32; ++lane) {
      for (int64_t j = 0; j < 4; ++j) {
        const int64_t n = lane / 4, k0 = outer * 128 + j * 32 + lane % 4 * 2;
        const int64_t v[] = {k0, k0 + 1, k0 + 8, k0 + 9, k0 + 16, k0 + 17, k0 + 24, k0 + 25};
        uint32_t want = 0;
        for (int i : {7, 5, 3, 1, 6, 4, 2, 0}) want = want << 4 | code(n, v[i]);
        const size_t word = static_cast<size_t>((outer * 32 + lane) * 4 + j);
        uint32_t got = 0;
        for (int b = 3; b >= 0; --b)
          got = got << 8 | static_cast<uint32_t>(packed[0].bytes[word * 4 + static_cast<size_t>(b)]);
        ASSERT_EQ(got, want) << outer << ' ' << lane << ' ' << j;
      }
    }
  }
}

// Int4TilePackedTo4dTensor.from_hp pads before quantizing: codes 0, scale 2^-126 (0x0080), zero 2^-123
// (0x0200).
TEST(Int4Tinygemm, TilePaddingIsWhatZerosQuantizeTo) {
  const WeightShape shape = {DType::bfloat16, 1, 128};
  const std::vector<std::byte> zeros(128 * 2);
  const Planes packed =
      g128().pack(g128().quantize({DType::bfloat16, 1, 128, zeros}, layout_of("tile_packed_4d")), shape,
                  layout_of("tile_packed_4d"));
  EXPECT_EQ(packed[0].shape, (std::vector<int64_t>{1, 8, 32, 4}));
  EXPECT_EQ(packed[1].shape, (std::vector<int64_t>{8, 8, 2}));
  EXPECT_EQ(to_hex(packed[0].bytes), std::string(2 * 4096, '0'));
  std::string parameters;
  for (int i = 0; i < 64; ++i) parameters += "80000002";
  EXPECT_EQ(to_hex(packed[1].bytes), parameters);
}

// The two producers clamp the scale of a constant group at different values.
TEST(Int4Tinygemm, LeastScaleDependsOnTheProducer) {
  const std::vector<std::byte> zeros(32 * 2);
  EXPECT_EQ(to_hex(g32().quantize({DType::bfloat16, 1, 32, zeros})[1].bytes), "86350637");
  EXPECT_EQ(to_hex(g32().quantize({DType::bfloat16, 1, 32, zeros}, layout_of("cpu_avx2"))[1].bytes),
            "86350637");
  EXPECT_EQ(to_hex(g32().quantize({DType::bfloat16, 1, 32, zeros}, layout_of("tile_packed_4d"))[1].bytes),
            "80000002");
  EXPECT_EQ(to_hex(g32().quantize({DType::bfloat16, 1, 32, zeros}, layout_of("tile_packed_4d_v1"))[1].bytes),
            "86350637");
}

// A dequantizer is a finite table: 16 codes per scale and zero, each the nearest bfloat16 to the exact value.
TEST(Int4Tinygemm, DequantizesEveryCodeWithOneRounding) {
  const double scale = 0x1.36p-4, zero = 0x1.84p-1;
  Planes planes = make_planes(g32().plane_specs({DType::bfloat16, 1, 32}));
  for (int i = 0; i < 16; ++i) planes[0].bytes[i] = static_cast<std::byte>(i << 4 | (15 - i));
  store_float(DType::bfloat16, planes[1].bytes, 0, scale);
  store_float(DType::bfloat16, planes[1].bytes, 1, zero);
  const std::vector<std::byte> out = g32().dequantize(planes, {DType::bfloat16, 1, 32});
  int rounded_twice_differs = 0;
  for (int k = 0; k < 32; ++k) {
    const int code = k % 2 == 0 ? k / 2 : 15 - k / 2;
    const double exact = (code - 8) * scale + zero;  // 12 bits and 8 bits: exact in double
    const double got = load_float(DType::bfloat16, out, k);
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 7);
    ASSERT_LE(std::fabs(got - exact), ulp / 2) << code;
    rounded_twice_differs += got != add_in(DType::bfloat16, mul_in(DType::bfloat16, code - 8, scale), zero);
  }
  EXPECT_GT(rounded_twice_differs, 0) << "these numbers must distinguish one rounding from two";
}

struct RefusalCase {
  const char* name;
  const char* scheme;
  WeightShape shape;
  const char* layout;
  const char* text;
};
class SchemeRefusal : public testing::TestWithParam<RefusalCase> {};
TEST_P(SchemeRefusal, SaysWhy) {
  const std::optional<std::string> refusal =
      find_scheme(GetParam().scheme)->refusal(GetParam().shape, layout_of(GetParam().layout));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(*refusal, GetParam().text);
}
INSTANTIATE_TEST_SUITE_P(
    All, SchemeRefusal,
    testing::Values(
        RefusalCase{"group",
                    "int4_tinygemm_g128",
                    {DType::bfloat16, 64, 32},
                    "plain",
                    "K = 32 is not a multiple of the group size 128"},
        RefusalCase{"rows",
                    "int4_tinygemm_g32",
                    {DType::bfloat16, 37, 64},
                    "cpu_avx2",
                    "N = 37 is not a multiple of 16, which torch's CPU packs require"},
        RefusalCase{"tile_dtype",
                    "int4_tinygemm_g32",
                    {DType::float16, 16, 64},
                    "tile_packed_4d",
                    "tile_packed_4d takes bfloat16 weights only, not float16"},
        RefusalCase{"dtype",
                    "int8_row",
                    {DType::float64, 4, 4},
                    "plain",
                    "int8_row takes float32, float16 and bfloat16 weights, not float64"},
        RefusalCase{"layout",
                    "fp8_row",
                    {DType::bfloat16, 4, 4},
                    "tile_packed_4d",
                    "fp8_row has no layout tile_packed_4d"},
        RefusalCase{
            "empty", "int8_row", {DType::bfloat16, 0, 4}, "plain", "int8_row cannot take an empty weight"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Int4Tinygemm, PlacesNameGroupColumnAndNibble) {
  const WeightShape shape = {DType::bfloat16, 48, 128};
  EXPECT_EQ(g32().place(shape, kPlain, "scale_and_zero", (3 * 48 + 17) * 4), "group 3, column 17 (scale)");
  EXPECT_EQ(g32().place(shape, kPlain, "scale_and_zero", (3 * 48 + 17) * 4 + 3), "group 3, column 17 (zero)");
  EXPECT_EQ(g32().place(shape, kPlain, "qdata", 5 * 64 + 6),
            "row 5, k 13 (low nibble of byte 326); row 5, k 12 (high nibble)");
  EXPECT_EQ(g32().place(shape, layout_of("cpu_avx2"), "qdata", 12 * 16 + 5),
            "row 5, k 12 (low nibble of byte 197); row 21, k 12 (high nibble)");
  EXPECT_EQ(g32().place({DType::bfloat16, 1, 128}, layout_of("tile_packed_4d"), "qdata", 4 * 16),
            "row 1, k 0 (padding) (low nibble of byte 64); row 1, k 8 (padding) (high nibble)");
}

// The documented toy model: two Linear 1024x1024 in bfloat16, 4,194,304 bytes.
struct SizeCase {
  const char* scheme;
  const char* layout;
  uint64_t bytes;
};
class ToyModel : public testing::TestWithParam<SizeCase> {};
TEST_P(ToyModel, HasTheDocumentedPayload) {
  const WeightShape layer = {DType::bfloat16, 1024, 1024};
  EXPECT_EQ(2 * find_scheme(GetParam().scheme)->payload_bytes(layer, layout_of(GetParam().layout)),
            GetParam().bytes);
}
INSTANTIATE_TEST_SUITE_P(Sizes, ToyModel,
                         testing::Values(SizeCase{"int4_tinygemm_g128", "plain", 1'114'112},
                                         SizeCase{"int4_tinygemm_g128", "cpu_avx512", 1'114'112},
                                         SizeCase{"int4_tinygemm_g128", "tile_packed_4d", 1'114'112},
                                         SizeCase{"int8_row", "plain", 2'107'392},
                                         SizeCase{"fp8_row", "plain", 2'105'344}),
                         [](const auto& info) {
                           return std::string(info.param.scheme) + "_" + info.param.layout;
                         });

}  // namespace
}  // namespace qcts
