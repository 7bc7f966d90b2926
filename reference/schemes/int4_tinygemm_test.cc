// Recorded from torchao 0.18.0 on torch 2.13.0: _choose_qparams_affine_tinygemm and _quantize_affine_tinygemm
// as Int4OpaqueTensor.from_hp calls them, and aten::_convert_weight_to_int4pack_for_cpu under
// ATEN_CPU_CAPABILITY=avx2 and default.
#include <cmath>
#include <set>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/testing.h"

namespace qcts {
namespace {

const Scheme& g32() { return *find_scheme("int4_tinygemm_g32"); }
const Scheme& g128() { return *find_scheme("int4_tinygemm_g128"); }

class Int4Recorded : public testing::TestWithParam<RecordedRow> {};

TEST_P(Int4Recorded, QuantizesAsTorchao) {
  const Planes planes = quantize_row(g32(), GetParam());
  EXPECT_EQ(to_hex(plane(planes, "qdata").bytes), GetParam().qdata);
  expect_same_planes({{"scale_and_zero", GetParam().dtype, {1, 1, 2}, from_hex(GetParam().scale)}},
                     {plane(planes, "scale_and_zero")});
}

INSTANTIATE_TEST_SUITE_P(
    Torchao, Int4Recorded,
    testing::Values(
        RecordedRow{"ramp_float32", DType::float32,
                    "000040c0000030c0000020c0000010c0000000c00000e0bf0000c0bf0000a0bf000080bf000040bf000000bf"
                    "000080be000000000000803e0000003f0000403f0000803f0000a03f0000c03f0000e03f0000004000001040"
                    "00002040000030400000404000005040000060400000704000008040000088400000904000009840",
                    "00112233445566778899aabbccddeeff", "4444043f1011913f", nullptr},
        RecordedRow{"halfway_float32", DType::float32,
                    "00000000000070410000003f0000c03f0000204000006040000090400000b0400000d0400000f04000000841"
                    "000018410000284100003841000048410000584100006841000000000000803f000000400000404000008040"
                    "0000a0400000c0400000e04000000041000010410000204100003041000040410000504100006041",
                    "0f022446688aaccee0123456789abcde", "0000803f00000041", nullptr},
        RecordedRow{"constant_float32", DType::float32,
                    "0000404000004040000040400000404000004040000040400000404000004040000040400000404000004040"
                    "0000404000004040000040400000404000004040000040400000404000004040000040400000404000004040"
                    "00004040000040400000404000004040000040400000404000004040000040400000404000004040",
                    "00000000000000000000000000000000", "bd37863522004040", nullptr},
        RecordedRow{"zeros_float32", DType::float32,
                    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
                    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
                    "00000000000000000000000000000000000000000000000000000000000000000000000000000000",
                    "00000000000000000000000000000000", "bd378635bd370637", nullptr},
        RecordedRow{"negative_float32", DType::float32,
                    "000000c1000001c1000002c1000003c1000004c1000005c1000006c1000007c1000008c1000009c100000ac1"
                    "00000bc100000cc100000dc100000ec100000fc1000010c1000011c1000012c1000013c1000014c1000015c1"
                    "000016c1000017c1000018c1000019c100001ac100001bc100001cc100001dc100001ec100001fc1",
                    "ffeeddccbbaa99887766554433221100", "4444043e78770ec1", nullptr},
        RecordedRow{"outlier_float32", DType::float32,
                    "00007a4400000000000080bc0000003d000040bd0000803d0000a0bd0000c03d0000e0bd0000003e000010be"
                    "0000203e000030be0000403e000050be0000603e000070be0000803e000088be0000903e000098be0000a03e"
                    "0000a8be0000b03e0000b8be0000c03e0000c8be0000d03e0000d8be0000e03e0000e8be0000f03e",
                    "f0000000000000000000000000000000", "cd648542cd470544", nullptr},
        RecordedRow{"wide_float32", DType::float32,
                    "ffff7f7fffff7fffffffff7eaaaaaa7effff7f7ecccc4c7eaaaa2a7e2449127effffff7d388ee37dcccccc7d"
                    "8b2eba7daaaaaa7dd8899d7d2449927d8888887dffff7f7df0f0707d388e637d3594577dcccc4c7d300c437d"
                    "8b2e3a7d4216327daaaa2a7d0ad7237dd8891d7d25b4177d2449127dca3d0d7d8888087d0821047d",
                    "00000000000000000000000000000000", "0000807f0000807f", nullptr},
        RecordedRow{"tiny_float32", DType::float32,
                    "0000000095bfd63395bf5634b00fa13495bfd634bd370635b00f2135a2e73b3595bf563587977135bd378635"
                    "b6a39335b00fa135a97bae35a2e7bb359c53c93595bfd6358e2be4358797f1358103ff35bd370636baed0c36"
                    "b6a31336b3591a36b00f2136acc52736a97b2e36a6313536a2e73b369f9d42369c53493698095036",
                    "00000011111111122222222222333333", "bd378635bd370637", nullptr},
        RecordedRow{"ramp_float16", DType::float16,
                    "00c280c100c180c000c000bf00be00bd00bc00ba00b800b4000000340038003a003c003d003e003f00408040"
                    "004180410042804200438043004440448044c044",
                    "00112233445566778899aabbccddeeff", "2238883c", nullptr},
        RecordedRow{"halfway_float16", DType::float16,
                    "0000804b0038003e0041004380448045804680474048c0484049c049404ac04a404b0000003c004000420044"
                    "0045004600470048804800498049004a804a004b",
                    "0f022446688aaccee0123456789abcde", "003c0048", nullptr},
        RecordedRow{"constant_float16", DType::float16,
                    "0042004200420042004200420042004200420042004200420042004200420042004200420042004200420042"
                    "0042004200420042004200420042004200420042",
                    "00000000000000000000000000000000", "11000042", nullptr},
        RecordedRow{"zeros_float16", DType::float16,
                    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
                    "0000000000000000000000000000000000000000",
                    "00000000000000000000000000000000", "11008800", nullptr},
        RecordedRow{"negative_float16", DType::float16,
                    "00c808c810c818c820c828c830c838c840c848c850c858c860c868c870c878c880c888c890c898c8a0c8a8c8"
                    "b0c8b8c8c0c8c8c8d0c8d8c8e0c8e8c8f0c8f8c8",
                    "ffeeddccbbaa99887766554433221100", "223074c8", nullptr},
        RecordedRow{"outlier_float16", DType::float16,
                    "d063000000a4002800aa002c00ad002e00af003080b0003180b1003280b2003380b3003440b48034c0b40035"
                    "40b58035c0b5003640b68036c0b6003740b78037",
                    "f0000000000000000000000000000000", "2b542a60", nullptr},
        RecordedRow{"wide_float16", DType::float16,
                    "ff7bfffbff775575ff73667255719270ff6f1c6f666ed16d556dec6c926c446cff6b876b1c6bbc6a666a186a"
                    "d169906955691e69ec68bd689268696844682168",
                    "00000000000000000000000000000000", "007c007c", nullptr},
        RecordedRow{"tiny_float16", DType::float16,
                    "0000020003000500070008000a000c000d000f001100120014001600170019001b001d001e00200022002300"
                    "2500270028002a002c002d002f00310032003400",
                    "00000011111111112222222222333333", "11008800", nullptr},
        RecordedRow{"ramp_bfloat16", DType::bfloat16,
                    "40c030c020c010c000c0e0bfc0bfa0bf80bf40bf00bf80be0000803e003f403f803fa03fc03fe03f00401040"
                    "2040304040405040604070408040884090409840",
                    "00112233445566778899aabbccddeeff", "043f903f", nullptr},
        RecordedRow{"halfway_bfloat16", DType::bfloat16,
                    "00007041003fc03f204060409040b040d040f04008411841284138414841584168410000803f004040408040"
                    "a040c040e0400041104120413041404150416041",
                    "0f022446688aaccee0123456789abcde", "803f0041", nullptr},
        RecordedRow{"constant_bfloat16", DType::bfloat16,
                    "4040404040404040404040404040404040404040404040404040404040404040404040404040404040404040"
                    "4040404040404040404040404040404040404040",
                    "00000000000000000000000000000000", "86354040", nullptr},
        RecordedRow{"zeros_bfloat16", DType::bfloat16,
                    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
                    "0000000000000000000000000000000000000000",
                    "00000000000000000000000000000000", "86350637", nullptr},
        RecordedRow{"negative_bfloat16", DType::bfloat16,
                    "00c101c102c103c104c105c106c107c108c109c10ac10bc10cc10dc10ec10fc110c111c112c113c114c115c1"
                    "16c117c118c119c11ac11bc11cc11dc11ec11fc1",
                    "feeddccbbaa998877665544332211000", "043e0ec1", nullptr},
        RecordedRow{"outlier_bfloat16", DType::bfloat16,
                    "7a44000080bc003d40bd803da0bdc03de0bd003e10be203e30be403e50be603e70be803e88be903e98bea03e"
                    "a8beb03eb8bec03ec8bed03ed8bee03ee8bef03e",
                    "f0000000000000000000000000000000", "85420544", nullptr},
        RecordedRow{"wide_bfloat16", DType::bfloat16,
                    "7f7f7fffff7eaa7e7f7e4c7e2a7e127eff7de37dcc7db97daa7d9d7d927d887d7f7d707d637d577d4c7d427d"
                    "397d317d2a7d237d1d7d177d127d0d7d087d047d",
                    "00000000000000000000000000000000", "807f807f", nullptr},
        RecordedRow{"tiny_bfloat16", DType::bfloat16,
                    "0000d7335734a134d734063521353c355735723586359435a135ae35bc35c935d735e435f235ff3506360d36"
                    "14361a36213628362e3635363c36433649365036",
                    "00000011111111122222222222333333", "86350637", nullptr}),
    row_name);

// A weight whose code [n, k] is (7n + 3k + nk/5) mod 16, scales and zeros counted up.
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

struct PackCase {
  const char* layout;
  int64_t n;
  uint64_t fnv;  // of the op's bytes, K = 64
};
class Int4CpuPack : public testing::TestWithParam<PackCase> {};

// N = 48, 80, 144 and 176 end in a block of 16 rows, which has another order.
TEST_P(Int4CpuPack, IsTheBytesOfTheOp) {
  const WeightShape shape = {DType::bfloat16, GetParam().n, 64};
  const Planes packed = g32().pack(patterned(g32(), shape), shape, GetParam().layout);
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
  ASSERT_EQ(g32().refusal(shape, GetParam().layout), std::nullopt);
  const Planes plain = patterned(g32(), shape);
  const Planes packed = g32().pack(plain, shape, GetParam().layout);
  EXPECT_NO_THROW(require_planes(packed, g32().plane_specs(shape, GetParam().layout)));
  expect_same_planes(plain, g32().unpack(packed, shape, GetParam().layout));
}

// One weight at a time, every 37th: setting its code to 15 must change one nibble, and no other weight's.
TEST_P(Int4Layout, AWeightHasANibbleOfItsOwn) {
  const WeightShape shape = {DType::bfloat16, GetParam().n, GetParam().k};
  Planes plain = make_planes(g32().plane_specs(shape));
  const Planes blank = g32().pack(plain, shape, GetParam().layout);
  std::set<std::pair<size_t, bool>> taken;
  for (int64_t at = 0; at < shape.n * shape.k; at += 37) {
    plain[0].bytes[at / 2] = static_cast<std::byte>(at % 2 == 0 ? 0xF0 : 0x0F);
    const Planes packed = g32().pack(plain, shape, GetParam().layout);
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
  const Planes packed = g32().pack(plain, shape, "cpu_avx512");
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
  const Planes packed = g32().pack(patterned(g32(), shape), shape, "tile_packed_4d");
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

// Int4TilePackedTo4dTensor.from_hp pads before it quantizes: codes 0, scale 2^-126 (0x0080), zero 2^-123
// (0x0200).
TEST(Int4Tinygemm, TilePaddingIsWhatZerosQuantizeTo) {
  const WeightShape shape = {DType::bfloat16, 1, 128};
  const std::vector<std::byte> zeros(128 * 2);
  const Planes packed = g128().pack(g128().quantize({DType::bfloat16, 1, 128, zeros}, "tile_packed_4d"),
                                    shape, "tile_packed_4d");
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
  EXPECT_EQ(to_hex(g32().quantize({DType::bfloat16, 1, 32, zeros}, "cpu_avx2")[1].bytes), "86350637");
  EXPECT_EQ(to_hex(g32().quantize({DType::bfloat16, 1, 32, zeros}, "tile_packed_4d")[1].bytes), "80000002");
  EXPECT_EQ(to_hex(g32().quantize({DType::bfloat16, 1, 32, zeros}, "tile_packed_4d_v1")[1].bytes),
            "86350637");
}

// A dequantizer is a finite table: 16 codes for one scale and zero, each the nearest bfloat16 to the exact
// value.
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
  EXPECT_GT(rounded_twice_differs, 0) << "these numbers must tell one rounding from two";
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
      find_scheme(GetParam().scheme)->refusal(GetParam().shape, GetParam().layout);
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
                    "N = 37 is not a multiple of 16, which the CPU packs of torch demand"},
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
        RefusalCase{"empty", "int8_row", {DType::bfloat16, 0, 4}, "plain", "int8_row takes no empty weight"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Int4Tinygemm, PlacesNameGroupColumnAndNibble) {
  const WeightShape shape = {DType::bfloat16, 48, 128};
  EXPECT_EQ(g32().place(shape, "plain", "scale_and_zero", (3 * 48 + 17) * 4), "group 3, column 17 (scale)");
  EXPECT_EQ(g32().place(shape, "plain", "scale_and_zero", (3 * 48 + 17) * 4 + 3),
            "group 3, column 17 (zero)");
  EXPECT_EQ(g32().place(shape, "plain", "qdata", 5 * 64 + 6),
            "row 5, k 13 (low nibble of byte 326); row 5, k 12 (high nibble)");
  EXPECT_EQ(g32().place(shape, "cpu_avx2", "qdata", 12 * 16 + 5),
            "row 5, k 12 (low nibble of byte 197); row 21, k 12 (high nibble)");
  EXPECT_EQ(g32().place({DType::bfloat16, 1, 128}, "tile_packed_4d", "qdata", 4 * 16),
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
  EXPECT_EQ(2 * find_scheme(GetParam().scheme)->payload_bytes(layer, GetParam().layout), GetParam().bytes);
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
