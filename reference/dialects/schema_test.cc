// SPDX-License-Identifier: BSD-3-Clause
// Tests each class's shape rules. Every row breaks one part of a valid tensor and must be refused as
// SubclassSchema; the unbroken tensor must be read with its scheme.
#include "reference/dialects/classes/schema.h"

#include <cstring>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/decoders/scheme_tensor.h"

namespace qcts {
namespace {

Tensor zeros(DType dtype, std::vector<int64_t> shape) {
  const uint64_t bytes = bytes_of(dtype, shape);
  return make_tensor(dtype, std::move(shape), std::vector<std::byte>(bytes));
}

NamedTensor int8() {
  NamedTensor t;
  t.name = "w", t.type = "Int8Tensor";
  t.payload = {{"qdata", zeros(DType::int8, {4, 8})},
               {"scale", zeros(DType::float32, {4, 1})},
               {"zero_point", zeros(DType::int8, {4, 1})}};
  t.attributes = {{"block_size", {1, 8}}, {"dtype", dtype_json(DType::bfloat16)}};
  return t;
}

NamedTensor float8() {
  NamedTensor t;
  t.name = "w", t.type = "Float8Tensor";
  t.payload = {{"qdata", zeros(DType::float8_e4m3fn, {4, 8})}, {"scale", zeros(DType::float32, {4, 1})}};
  t.attributes = {{"block_size", {1, 8}}, {"dtype", dtype_json(DType::bfloat16)}};
  return t;
}

NamedTensor int4() {
  NamedTensor t;
  t.name = "w", t.type = "Int4Tensor";
  t.payload = {{"qdata", zeros(DType::int8, {4, 32})},
               {"scale", zeros(DType::bfloat16, {2, 4})},
               {"zero_point", zeros(DType::bfloat16, {2, 4})}};
  t.attributes = {{"block_size", {1, 32}}, {"shape", {4, 64}}};
  return t;
}

NamedTensor opaque() {
  NamedTensor t;
  t.name = "w", t.type = "Int4OpaqueTensor";
  t.payload = {{"qdata", zeros(DType::uint8, {16, 32})},
               {"scale_and_zero", zeros(DType::bfloat16, {2, 16, 2})}};
  t.attributes = {{"block_size", {1, 32}}, {"shape", {16, 64}}};
  return t;
}

NamedTensor tile() {
  NamedTensor t;
  t.name = "w", t.type = "Int4TilePackedTo4dTensor";
  t.payload = {{"qdata", zeros(DType::int32, {3, 8, 32, 4})},
               {"scale_and_zero", zeros(DType::bfloat16, {32, 24, 2})}};
  t.attributes = {{"block_size", {1, 32}}, {"shape", {20, 96}}};
  return t;
}

NamedTensor intx() {
  NamedTensor t;
  t.name = "w", t.type = "IntxUnpackedToInt8Tensor";
  t.payload = {{"qdata", zeros(DType::int8, {4, 8})},
               {"scale", zeros(DType::bfloat16, {4, 2})},
               {"zero_point", zeros(DType::int8, {4, 2})}};
  t.attributes = {{"target_dtype", {{"_type", "torch.dtype"}, {"_data", "int4"}}},
                  {"block_size", {{"_type", "tuple"}, {"_data", {1, 4}}}},
                  {"dtype", dtype_json(DType::bfloat16)},
                  {"activation_quantization", nullptr}};
  return t;
}

NamedTensor mx() {
  NamedTensor t;
  t.name = "w", t.type = "MXTensor";
  t.payload = {{"qdata", zeros(DType::uint8, {130, 32})}, {"scale", zeros(DType::float8_e8m0fnu, {64, 16})}};
  t.attributes = {{"elem_dtype", dtype_json(DType::float4_e2m1fn_x2)},
                  {"block_size", 32},
                  {"orig_dtype", dtype_json(DType::bfloat16)},
                  {"kernel_preference", nullptr},
                  {"act_quant_kwargs", nullptr},
                  {"is_swizzled_scales", true}};
  return t;
}

NamedTensor mx6() {
  NamedTensor t = mx();
  t.payload = {{"qdata", zeros(DType::uint8, {4, 64})}, {"scale", zeros(DType::float8_e8m0fnu, {4, 2})}};
  t.attributes["elem_dtype"] = "fp6_e3m2";
  t.attributes["is_swizzled_scales"] = false;
  return t;
}

NamedTensor nvfp4() {
  NamedTensor t;
  t.name = "w", t.type = "NVFP4Tensor";
  t.payload = {{"qdata", zeros(DType::uint8, {4, 32})},
               {"scale", zeros(DType::float8_e4m3fn, {4, 4})},
               {"per_tensor_scale", zeros(DType::float32, {})}};
  t.attributes = {{"block_size", 16}, {"orig_dtype", dtype_json(DType::bfloat16)}};
  return t;
}

NamedTensor nf4() {
  NamedTensor t;
  t.name = "w", t.type = "NF4Tensor";
  t.shape = {128, 128}, t.dtype = DType::float16;
  t.payload = {{"quantized_data", zeros(DType::uint8, {8192})},
               {"scaler_mean", zeros(DType::float16, {})},
               {"quantization_factor", zeros(DType::float16, {1})},
               {"quantized_scalers", zeros(DType::int8, {256})},
               {"nf4", zeros(DType::float16, {16})}};
  t.attributes = {{"block_size", 64}, {"n_blocks", 256}, {"scaler_block_size", 256}};
  return t;
}

NamedTensor sparse() {
  NamedTensor t;
  t.name = "w", t.type = "Float8Sparse2x4_2DData2DMetadataTensor";
  t.payload = {{"qdata", zeros(DType::float8_e4m3fn, {65, 40})},
               {"sparse_metadata", zeros(DType::uint8, {128, 16})},
               {"scale", zeros(DType::float32, {65, 1})}};
  t.attributes = {{"block_size", {1, 80}}, {"dtype", dtype_json(DType::bfloat16)}};
  return t;
}

void check(NamedTensor& tensor) {
  std::vector<std::string> warnings;
  const ClassSchema& schema = *find_class(tensor.type);
  arrange(schema, tensor, false, warnings);
  const Outer outer = schema.outer(tensor);
  tensor.shape = outer.shape;
  tensor.dtype = outer.dtype;
  recognize_scheme(tensor);
}

struct Broken {
  const char* what;
  NamedTensor (*make)();
  std::function<void(NamedTensor&)> change;
};

std::function<void(NamedTensor&)> attribute(const char* name, Json value) {
  return [=](NamedTensor& t) { t.attributes[name] = value; };
}
std::function<void(NamedTensor&)> part(size_t at, DType dtype, std::vector<int64_t> shape) {
  return [=](NamedTensor& t) { t.payload[at].tensor = zeros(dtype, shape); };
}

class BrokenTensor : public testing::TestWithParam<Broken> {};

TEST_P(BrokenTensor, IsRefused) {
  NamedTensor whole = GetParam().make();
  ASSERT_NO_THROW(check(whole));
  NamedTensor broken = GetParam().make();
  GetParam().change(broken);
  try {
    check(broken);
    FAIL() << "accepted";
  } catch (const Refused& error) {
    EXPECT_EQ(error.refusal().cls, RefusalClass::SubclassSchema);
    EXPECT_EQ(error.refusal().detail.find("w (" + broken.type + "): "), 0u) << error.what();
  }
}

constexpr int64_t kHuge = int64_t{1} << 20;

INSTANTIATE_TEST_SUITE_P(
    Schema, BrokenTensor,
    testing::
        Values(
            Broken{"mx_element", mx, attribute("elem_dtype", "fp5_e2m2")},
            Broken{"mx_code_dtype", mx, part(0, DType::float8_e4m3fn, {130, 32})},
            Broken{"mx_scale_dtype", mx, part(1, DType::uint8, {64, 16})},
            Broken{"mx_scale_not_tiles", mx, part(1, DType::float8_e8m0fnu, {130, 2})},
            Broken{"mx_block_no_divisor", mx, attribute("block_size", 48)},
            Broken{"mx_block_zero", mx, attribute("block_size", 0)},
            Broken{"mx_orig_dtype", mx, attribute("orig_dtype", dtype_json(DType::int8))},
            Broken{"mx_flat", mx, part(0, DType::uint8, {4160})},
            Broken{"mx6_seventh_bit", mx6,
                   [](NamedTensor& t) {
                     std::vector<std::byte> codes(256);
                     codes[9] = std::byte{64};
                     t.payload[0].tensor = make_tensor(DType::uint8, {4, 64}, codes);
                   }},
            Broken{"nvfp4_scale_rows", nvfp4, part(1, DType::float8_e4m3fn, {5, 4})},
            Broken{"nvfp4_scale_dtype", nvfp4, part(1, DType::float8_e5m2, {4, 4})},
            Broken{"nvfp4_whole_dtype", nvfp4, part(2, DType::float64, {})},
            Broken{"nf4_data", nf4, part(0, DType::uint8, {8191})},
            Broken{"nf4_mean_shape", nf4, part(1, DType::float16, {1})},
            Broken{"nf4_mean_dtype", nf4, part(1, DType::bfloat16, {})},
            Broken{"nf4_table", nf4, part(4, DType::float16, {15})},
            Broken{"nf4_blocks", nf4, attribute("n_blocks", 255)},
            Broken{"nf4_block_size", nf4, attribute("block_size", -64)},
            Broken{"sparse_metadata_rows", sparse, part(1, DType::uint8, {65, 16})},
            Broken{"sparse_scale", sparse, part(2, DType::float32, {1, 65})},
            Broken{"int8_code_dtype", int8, part(0, DType::uint8, {4, 8})},
            Broken{"int8_scale_rows", int8, part(1, DType::float32, {3, 1})},
            Broken{"int8_scale_flat", int8, part(1, DType::float32, {4})},
            Broken{"int8_scale_dtype", int8, part(1, DType::int32, {4, 1})},
            Broken{"int8_zero_shape", int8, part(2, DType::int8, {4, 2})},
            Broken{"int8_zero_dtype", int8, part(2, DType::int64, {4, 1})},
            Broken{"int8_block_zero", int8, attribute("block_size", {1, 0})},
            Broken{"int8_block_negative", int8, attribute("block_size", {1, -8})},
            Broken{"int8_block_float", int8, attribute("block_size", {1, 8.0})},
            Broken{"int8_block_rank", int8, attribute("block_size", {8})},
            Broken{"int8_block_no_divisor", int8, attribute("block_size", {1, 3})},
            Broken{"int8_block_null", int8, attribute("block_size", nullptr)},
            Broken{"int8_dtype", int8, attribute("dtype", dtype_json(DType::int8))},
            Broken{
                "int8_kwargs", int8,
                attribute("act_quant_kwargs", {{"_type", "PerRow"}, {"_data", Json::object()}})},
            Broken{"int8_reduce", int8, attribute("reduce_range", 1)},
            Broken{"int8_extra", int8, attribute("evil", 1)},
            Broken{"int8_no_scale", int8, [](NamedTensor& t) { t.payload.erase(t.payload.begin() + 1); }},
            Broken{
                "int8_more", int8,
                [](NamedTensor& t) { t.payload.push_back({"evil", zeros(DType::int8, {1})}); }},
            Broken{"float8_code_dtype", float8, part(0, DType::uint8, {4, 8})},
            Broken{"float8_scale", float8, part(1, DType::float32, {4, 3})},
            Broken{"float8_scale_rank", float8, part(1, DType::float32, {4})},
            Broken{"float8_kernel", float8, attribute("kernel_preference", "auto")},
            Broken{"int4_huge", int4, attribute("shape", {kHuge, kHuge})},
            Broken{"int4_packing", int4, part(0, DType::int8, {4, 64})},
            Broken{"int4_group", int4, attribute("block_size", {1, 48})},
            Broken{"int4_odd_group", int4, attribute("block_size", {1, 1})},
            Broken{"int4_block_rows", int4, attribute("block_size", {2, 32})},
            Broken{"int4_scale_order", int4, part(1, DType::bfloat16, {4, 2})},
            Broken{"int4_zero_dtype", int4, part(2, DType::float32, {2, 4})},
            Broken{"opaque_pairs", opaque, part(1, DType::bfloat16, {2, 16, 1})},
            Broken{"opaque_shape", opaque, attribute("shape", {16, 128})},
            Broken{"opaque_mapping", opaque, attribute("act_mapping_type", "evil")},
            Broken{"tile_words", tile, part(0, DType::int32, {3, 8, 32, 2})},
            Broken{"tile_rows", tile, attribute("shape", {200, 96})},
            Broken{"tile_columns", tile, attribute("shape", {20, 1096})},
            Broken{"tile_pairs", tile, part(1, DType::bfloat16, {3, 20, 2})},
            Broken{
                "intx_target", intx,
                attribute("target_dtype", {{"_type", "torch.dtype"}, {"_data", "int9"}})},
            Broken{"intx_scale", intx, part(1, DType::bfloat16, {4, 1})},
            Broken{
                "intx_range", intx,
                [](NamedTensor& t) {
                  std::vector<std::byte> codes(32);
                  codes[5] = std::byte{8};
                  t.payload[0].tensor = make_tensor(DType::int8, {4, 8}, codes);
                }}),
    [](const auto& info) { return std::string(info.param.what); });

TEST(Schema, RecognizesSchemes) {
  const auto scheme_of = [](NamedTensor tensor) {
    check(tensor);
    return tensor.scheme + "/" + layout_name(tensor.layout);
  };
  EXPECT_EQ(scheme_of(int8()), "int8_row/plain");
  EXPECT_EQ(scheme_of(float8()), "fp8_row/plain");
  EXPECT_EQ(scheme_of(opaque()), "int4_tinygemm_g32/");
  EXPECT_EQ(scheme_of(tile()), "int4_tinygemm_g32/tile_packed_4d");
  EXPECT_EQ(scheme_of(int4()), "int4_plain_g32/plain");  // another recipe: MSLK's, signed codes
  NamedTensor float8_x = int4();
  float8_x.attributes["activation_dtype"] = dtype_json("float8_e4m3fn");
  EXPECT_EQ(scheme_of(float8_x), "int4_plain_sym_g32/plain");
  check(float8_x);
  EXPECT_EQ(float8_x.activation, "dyn_row_mslk");
  NamedTensor other_x = int4();
  other_x.attributes["activation_dtype"] = dtype_json("float8_e5m2");
  EXPECT_EQ(scheme_of(other_x), "/");
  NamedTensor grouped = int8();
  grouped.attributes["block_size"] = {1, 4};
  grouped.payload[1].tensor = zeros(DType::float32, {4, 2});
  grouped.payload[2].tensor = zeros(DType::int8, {4, 2});
  EXPECT_EQ(scheme_of(grouped), "int8_g4/plain");
  NamedTensor dynamic = int8();
  dynamic.attributes["act_quant_kwargs"] = {{"_type", "QuantizeTensorToInt8Kwargs"},
                                            {"_data", Json::object()}};
  EXPECT_EQ(scheme_of(dynamic), "/");
  NamedTensor e5m2 = float8();
  e5m2.payload[0].tensor = zeros(DType::float8_e5m2, {4, 8});
  EXPECT_EQ(scheme_of(e5m2), "fp8_e5m2_row/plain");
  EXPECT_EQ(scheme_of(mx()), "mxfp4_floor/swizzled");
  EXPECT_EQ(scheme_of(mx6()), "mxfp6_e3m2_floor/plain");
  NamedTensor even = mx6();
  even.attributes["act_quant_kwargs"] = {
      {"_type", "QuantizeTensorToMXKwargs"},
      {"_data",
       {{"elem_dtype", "fp6_e3m2"},
        {"block_size", 32},
        {"scaling_mode", {{"_type", "ScaleCalculationMode"}, {"_data", "EVEN"}}}}}};
  EXPECT_EQ(scheme_of(even), "mxfp6_e3m2_even/plain");
  EXPECT_EQ(scheme_of(nvfp4()), "nvfp4_two_level/plain");
  EXPECT_EQ(scheme_of(nf4()), "nf4_b64_s256/plain");
  EXPECT_EQ(scheme_of(sparse()), "fp8_sparse24_row/cutlass_sm90");
}

// torchao 0.15: scales in the logical dtype, no zero_point.
// torch.split() of an NF4Tensor, as FSDP shards it, leaves n_blocks as it was.
TEST(Schema, AChunkOfNf4KeepsTheBlockCountOfTheWhole) {
  for (const int64_t whole : {256, 512, 768}) {
    NamedTensor chunk = nf4();
    chunk.attributes["n_blocks"] = whole;
    check(chunk);
    EXPECT_EQ(chunk.scheme, "nf4_b64_s256") << whole;
  }
}

TEST(Schema, OlderInt8BecomesTodaysPlanes) {
  NamedTensor old = int8();
  old.payload.pop_back();
  const std::vector<uint16_t> halves = {0x3c00, 0x0001, 0xfbff, 0x7c00};  // 1, 2^-24, -65504, inf
  std::vector<std::byte> bytes(8);
  std::memcpy(bytes.data(), halves.data(), 8);
  old.payload[1].tensor = make_tensor(DType::float16, {4, 1}, bytes);
  old.attributes["dtype"] = dtype_json(DType::float16);
  check(old);
  ASSERT_EQ(old.scheme, "int8_row");
  const SchemeTensor planes = *scheme_tensor(old);
  require_planes(planes.planes, planes.scheme->plane_specs({DType::float16, 4, 8}));
  std::vector<float> scales(4);
  std::memcpy(scales.data(), plane(planes.planes, "scale").bytes.data(), 16);
  EXPECT_EQ(scales, (std::vector<float>{1.0f, 0x1p-24f, -65504.0f, std::numeric_limits<float>::infinity()}));
}

// [2, 2, 8] is [4, 8] in three dimensions. A block that spans two experts has no rows.
TEST(Schema, ExpertsInOneTensorAreAMatrixOfAllTheirRows) {
  NamedTensor experts = int8();
  experts.payload[0].tensor = zeros(DType::int8, {2, 2, 8});
  experts.payload[1].tensor = zeros(DType::float32, {2, 2, 1});
  experts.payload[2].tensor = zeros(DType::int8, {2, 2, 1});
  experts.attributes["block_size"] = {1, 1, 8};
  check(experts);
  ASSERT_EQ(experts.scheme, "int8_row");
  EXPECT_EQ(experts.shape, (std::vector<int64_t>{2, 2, 8}));
  const SchemeTensor planes = *scheme_tensor(experts);
  EXPECT_EQ(planes.n, 4);
  EXPECT_EQ(planes.k, 8);
  require_planes(planes.planes, planes.scheme->plane_specs({DType::bfloat16, 4, 8}));
  NamedTensor columns = experts;
  columns.scheme = "";
  columns.payload[1].tensor = zeros(DType::float32, {1, 2, 1});
  columns.payload[2].tensor = zeros(DType::int8, {1, 2, 1});
  columns.attributes["block_size"] = {2, 1, 8};
  check(columns);
  EXPECT_EQ(columns.scheme, "");
}

// [2, 4, 1, 2] with groups of two channels: (code - zero point) * scale, the scale of the element's channels.
TEST(Schema, GroupsAlongTheChannelsOfAConvolutionHaveAMeaning) {
  NamedTensor filters = intx();
  std::vector<std::byte> codes(16);
  for (size_t i = 0; i < 16; ++i) codes[i] = static_cast<std::byte>(static_cast<int>(i % 7) - 3);
  std::vector<std::byte> scales(2 * 2 * 2 * 4);
  for (size_t i = 0; i < 8; ++i) {
    const float scale = static_cast<float>(i + 1);
    std::memcpy(scales.data() + 4 * i, &scale, 4);
  }
  filters.payload[0].tensor = make_tensor(DType::int8, {2, 4, 1, 2}, codes);
  filters.payload[1].tensor = make_tensor(DType::float32, {2, 2, 1, 2}, scales);
  filters.payload[2].tensor = zeros(DType::int8, {2, 2, 1, 2});
  filters.attributes["block_size"] = {{"_type", "tuple"}, {"_data", {1, 2, 1, 1}}};
  filters.attributes["dtype"] = dtype_json(DType::float32);
  check(filters);
  EXPECT_EQ(filters.scheme, "");
  const std::optional<Tensor> dense = dense_by_dialect(filters);
  ASSERT_TRUE(dense);
  std::vector<float> got(16), want(16);
  std::memcpy(got.data(), row_major_bytes(*dense).data(), 64);
  for (int i = 0; i < 16; ++i)  // [n, channel, 0, x]
    want[i] = static_cast<float>((i % 7 - 3) * (i / 8 * 4 + i % 8 / 4 * 2 + i % 2 + 1));
  EXPECT_EQ(got, want);
}

TEST(Schema, CpuPackNeedsAHint) {
  NamedTensor pack = opaque();
  check(pack);
  EXPECT_THROW(scheme_tensor(pack), Refused);
  EXPECT_THROW(scheme_tensor(pack, "cpu_avx1024"), Refused);
  EXPECT_EQ(scheme_tensor(pack, "cpu_avx2")->layout, "cpu_avx2");
}

}  // namespace
}  // namespace qcts
