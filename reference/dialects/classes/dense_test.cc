// SPDX-License-Identifier: BSD-3-Clause
// Meanings of tensors that no scheme describes, on values small enough to work out by hand. scripts/blind
// --classes compares the same code with the library's own bits.
#include <gtest/gtest.h>

#include <cstring>

#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/block_floats.h"
#include "reference/dialects/classes/schema.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

Tensor bytes_tensor(DType dtype, std::vector<int64_t> shape, std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (int value : values) bytes.push_back(static_cast<std::byte>(value));
  return make_tensor(dtype, std::move(shape), std::move(bytes));
}

Tensor floats_tensor(DType dtype, std::vector<int64_t> shape, std::initializer_list<float> values) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(dtype));
  size_t i = 0;
  for (float value : values) store_float(dtype, bytes, i++, value);
  return make_tensor(dtype, std::move(shape), std::move(bytes));
}

NamedTensor named(const char* type, std::vector<int64_t> shape, DType dtype, std::vector<InnerTensor> payload,
                  Json attributes = Json::object()) {
  NamedTensor tensor;
  tensor.name = "w", tensor.type = type;
  tensor.shape = std::move(shape), tensor.dtype = dtype;
  tensor.payload = std::move(payload);
  tensor.attributes = std::move(attributes);
  return tensor;
}

std::vector<float> values_of(const std::optional<Tensor>& dense) {
  if (!dense) return {};
  return load_floats(dense->dtype, row_major_bytes(*dense));
}

Tensor transposed(Tensor tensor) {
  std::swap(tensor.shape[0], tensor.shape[1]);
  std::swap(tensor.stride[0], tensor.stride[1]);
  return tensor;
}

constexpr int kOne = 0x38, kTwo = 0x40;  // float8_e4m3fn

TEST(DenseOfClass, TransposedBlocksRunAlongTheOriginalRows) {
  const Json attributes = {{"elem_dtype", dtype_json(DType::float8_e4m3fn)},
                           {"block_size", 2},
                           {"orig_dtype", dtype_json(DType::float32)}};
  const Tensor qdata = bytes_tensor(DType::float8_e4m3fn, {2, 4},
                                    {kOne, kOne, kTwo, kTwo, kTwo, kOne, kOne, kTwo}),
               scale = bytes_tensor(DType::float8_e8m0fnu, {2, 2}, {127, 128, 129, 126});
  const std::vector<float> rows = {1, 1, 4, 4, 8, 4, 0.5, 1};
  EXPECT_EQ(values_of(dense_by_dialect(
                named("MXTensor", {2, 4}, DType::float32, {{"qdata", qdata}, {"scale", scale}}, attributes))),
            rows);
  const NamedTensor turned = named("MXTensor", {4, 2}, DType::float32,
                                   {{"qdata", transposed(qdata)}, {"scale", transposed(scale)}}, attributes);
  EXPECT_EQ(block_floats_of(turned)->logical_shape(), (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(values_of(dense_by_dialect(turned)), (std::vector<float>{1, 8, 1, 4, 4, 0.5, 4, 1}));
}

// torchao 0.13.0, mx_formats/kernels.py, triton_pack_uint6_kernel: codes 1, 2, 3, 33 of e3m2 (steps of 2^-4,
// and -2^-4) in three runs of one byte.
TEST(DenseOfClass, PackedSixBitsAreThreeRunsOfBytes) {
  const int codes[] = {0b000001, 0b000110, 0b001011, 0b100001};
  const int a = codes[1] >> 2 | (codes[0] << 2 & 0xF0), b = codes[3] >> 2 | (codes[2] << 2 & 0xF0),
            low = (codes[0] << 6 & 0xC0) | (codes[1] << 4 & 0x30) | (codes[2] << 2 & 0xC) | (codes[3] & 3);
  Json attributes = {{"_elem_dtype", "fp6_e3m2"},
                     {"_block_size", 4},
                     {"_orig_dtype", dtype_json(DType::float32)},
                     {"_pack_fp6", true}};
  std::vector<InnerTensor> payload = {{"_scale_e8m0", bytes_tensor(DType::float8_e8m0fnu, {1, 1}, {128})},
                                      {"_data", bytes_tensor(DType::uint8, {1, 3}, {a, b, low})}};
  const auto six = [](int code) { return 2 * static_cast<float>(decode_float(DType::float6_e3m2fn, code)); };
  EXPECT_EQ(values_of(dense_by_dialect(named("MXTensor", {1, 4}, DType::float32, payload, attributes))),
            (std::vector<float>{six(codes[0]), six(codes[1]), six(codes[2]), six(codes[3])}));
}

// Until 0.14 the even element was in the high nibble.
TEST(DenseOfClass, OldFourBitsAreHighFirst) {
  const Tensor qdata = bytes_tensor(DType::uint8, {1, 1}, {0x21}),
               scale = bytes_tensor(DType::uint8, {1, 1}, {127});
  const Json old = {
      {"_elem_dtype", "fp4_e2m1"}, {"_block_size", 2}, {"_orig_dtype", dtype_json(DType::float32)}};
  EXPECT_EQ(values_of(dense_by_dialect(
                named("MXTensor", {1, 2}, DType::float32, {{"_scale_e8m0", scale}, {"_data", qdata}}, old))),
            (std::vector<float>{1, 0.5}));
}

TEST(DenseOfClass, FractionalZeroPointsAreRoundedInTheWeightsType) {
  const auto weight = [](float zero) {
    return values_of(dense_by_dialect(named("IntxUnpackedToInt8Tensor", {1, 2}, DType::bfloat16,
                                            {{"qdata", bytes_tensor(DType::int8, {1, 2}, {127, -1})},
                                             {"scale", floats_tensor(DType::float32, {1, 1}, {1})},
                                             {"zero_point", floats_tensor(DType::float32, {1, 1}, {zero})}},
                                            {{"block_size", {1, 2}}})));
  };
  EXPECT_EQ(weight(-0.5), (std::vector<float>{127.5, -0.5}));
  EXPECT_EQ(weight(-0.25), (std::vector<float>{127, -0.75}));  // 127.25 has nine bits
}

TEST(DenseOfClass, Float8GoesByTheScaleAndSaysSo) {
  NamedTensor tensor = named("Float8Tensor", {2, 2}, DType::float32,
                             {{"qdata", bytes_tensor(DType::float8_e4m3fn, {2, 2}, {kOne, kTwo, kOne, kTwo})},
                              {"scale", floats_tensor(DType::float32, {1, 2}, {1, 10})}},
                             {{"block_size", {1, 2}}, {"dtype", dtype_json(DType::float32)}});
  EXPECT_EQ(values_of(dense_by_dialect(tensor)), (std::vector<float>{1, 20, 1, 20}));
  std::vector<std::string> warnings;
  arrange(*find_class("Float8Tensor"), tensor, false, warnings);
  EXPECT_NE(find_class("Float8Tensor")->outer(tensor).note.find("contradicts the scale"), std::string::npos);
  tensor.attributes["block_size"] = {2, 1};
  EXPECT_EQ(find_class("Float8Tensor")->outer(tensor).note, "");
}

TEST(DenseOfClass, OptimizerStatesAreFloat32) {
  std::vector<std::byte> map(256 * 4);
  store_float(DType::float32, map, 3, -0.5);
  store_float(DType::float32, map, 200, 0.25);
  const Tensor scale = floats_tensor(DType::float32, {2}, {2, 8});
  const std::optional<Tensor> eight =
      dense_by_dialect(named("OptimState8bit", {4}, DType::bfloat16,
                             {{"codes", bytes_tensor(DType::uint8, {4}, {3, 200, 3, 0})},
                              {"scale", scale},
                              {"qmap", make_tensor(DType::float32, {256}, map)}}));
  EXPECT_EQ(values_of(eight), (std::vector<float>{-1, 0.5, -4, 0}));
  EXPECT_EQ(eight->dtype, DType::float32);
  map.resize(16 * 4);
  EXPECT_EQ(values_of(dense_by_dialect(named("OptimState4bit", {2, 2}, DType::float32,
                                             {{"codes", bytes_tensor(DType::uint8, {2}, {0x30, 0x03})},
                                              {"scale", scale},
                                              {"qmap", make_tensor(DType::float32, {16}, map)}}))),
            (std::vector<float>{-1, 0, 0, -4}));
  EXPECT_EQ(values_of(dense_by_dialect(
                named("OptimStateFp8", {2}, DType::float32,
                      {{"codes", bytes_tensor(DType::float8_e4m3fn, {2}, {kOne, kTwo})}, {"scale", scale}}))),
            (std::vector<float>{2, 16}));
}

TEST(DenseOfClass, TrainingWeights) {
  EXPECT_EQ(values_of(dense_by_dialect(named("BitNetPacked2bitLinearWeight", {1, 4}, DType::float32,
                                             {{"int_data", bytes_tensor(DType::int8, {1, 1}, {0b01001110})},
                                              {"scale", floats_tensor(DType::float32, {}, {3})}}))),
            (std::vector<float>{3, 0, -3, -6}));
  EXPECT_EQ(
      values_of(dense_by_dialect(named("Float8TrainingTensor", {2}, DType::bfloat16,
                                       {{"_data", bytes_tensor(DType::float8_e4m3fn, {2}, {kOne, kTwo})},
                                        {"_scale", floats_tensor(DType::float32, {}, {4})}}))),
      (std::vector<float>{0.25, 0.5}));
  const Tensor plain = floats_tensor(DType::float32, {2}, {5, 6});
  EXPECT_EQ(values_of(dense_by_dialect(
                named("BitNetTrainingLinearWeight", {2}, DType::float32, {{"_data", plain}}))),
            (std::vector<float>{5, 6}));
  EXPECT_FALSE(
      dense_by_dialect(named("BitNetTrainingLinearWeight", {3}, DType::float32, {{"_data", plain}})));
}

TEST(DenseOfClass, TablesOfBlocks) {
  const NamedTensor weight =
      named("CodebookQuantizedTensor", {2, 4}, DType::float32,
            {{"codes", bytes_tensor(DType::uint8, {2, 4}, {0, 1, 0, 1, 1, 0, 1, 0})},
             {"codebook", floats_tensor(DType::float32, {1, 2, 2, 1}, {1, 2, 10, 20})}},
            {{"block_size", {-1, 2}}});
  EXPECT_EQ(values_of(dense_by_dialect(weight)), (std::vector<float>{1, 2, 10, 20, 2, 1, 20, 10}));
  NamedTensor outside = weight;
  outside.payload[0].tensor = bytes_tensor(DType::uint8, {2, 4}, {0, 1, 0, 1, 1, 0, 1, 2});
  EXPECT_FALSE(dense_by_dialect(outside));
}

TEST(DenseOfClass, BitShardsAlongAnyDimension) {
  // Eight codes of three bits along dimension 0: 0 .. 7. Two bits a code in int2_shard, one in int1_shard.
  const NamedTensor codes =
      named("UintxTensor", {8, 1}, DType::uint8,
            {{"int2_shard", bytes_tensor(DType::uint8, {2, 1}, {0b10001000, 0b11011101})},
             {"int1_shard", bytes_tensor(DType::uint8, {1, 1}, {0b11110000})}},
            {{"bit_width", 3}, {"pack_dim", 0}});
  const std::optional<Tensor> dense = dense_by_dialect(codes);
  ASSERT_TRUE(dense);
  const std::vector<std::byte> bytes = row_major_bytes(*dense);
  const std::vector<int> want = {0, 1, 2, 3, 4, 5, 6, 7};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(std::to_integer<int>(bytes[i]), want[i]) << i;
}

}  // namespace
}  // namespace qcts
