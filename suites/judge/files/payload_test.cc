// SPDX-License-Identifier: BSD-3-Clause
// Protects the comparisons of round_trip, size and reject: each field that may differ is noticed and named.
#include "suites/judge/files/payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/formats/io/mapped_file.h"
#include "suites/base/paths.h"
#include "suites/judge/files/size.h"

namespace qcts {
namespace {

using testing::HasSubstr;

Tensor tensor_of_bytes(DType dtype, std::vector<int64_t> shape) {
  std::vector<std::byte> bytes(bytes_of(dtype, shape));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  return make_tensor(dtype, std::move(shape), std::move(bytes));
}

Checkpoint checkpoint() {
  Checkpoint c;
  c.dialect = "torchao_v2";
  NamedTensor weight;
  weight.name = "a.weight";
  weight.type = "Int8Tensor";
  weight.scheme = "int8_row";
  weight.layout = kPlain;
  weight.shape = {2, 6};
  weight.dtype = DType::bfloat16;
  weight.payload = {{"qdata", tensor_of_bytes(DType::int8, {2, 6})},
                    {"scale", tensor_of_bytes(DType::float32, {2, 1})},
                    {"zero_point", tensor_of_bytes(DType::int8, {2, 1})}};
  weight.attributes["block_size"] = {1, 6};
  NamedTensor bias;
  bias.name = "a.bias";
  bias.type = "Tensor";
  bias.shape = {2};
  bias.dtype = DType::bfloat16;
  bias.payload = {{"data", tensor_of_bytes(DType::bfloat16, {2})}};
  c.tensors = {weight, bias};
  c.file_bytes = 22 + 4 + 1000;
  return c;
}

// {"layer": {"weight": [0, 1, 2, 3], "tied": its last half}, "step": 7, "name": "adam", "frozen": False}
Checkpoint pickled() {
  const Tensor whole = tensor_of_bytes(DType::uint8, {4});
  Tensor half = whole;
  half.shape = {2}, half.offset_elems = 2;
  const pickle::Ref root = pickle::dict(), layer = pickle::dict();
  layer->pairs = {{pickle::string("weight"), tensor_node(whole, "0")},
                  {pickle::string("tied"), tensor_node(half, "0")}};
  root->pairs = {{pickle::string("layer"), layer},
                 {pickle::string("step"), pickle::integer(7)},
                 {pickle::string("name"), pickle::string("adam")},
                 {pickle::string("frozen"), pickle::boolean(false)}};
  return read_checkpoint(MappedFile::from_bytes(write_torch_zip("archive", root, {whole.storage})));
}

Checkpoint in_safetensors() {
  return read_checkpoint(MappedFile::from_bytes(
      write_safetensors({{"a", tensor_of_bytes(DType::uint8, {4})}}, {{"format", "pt"}})));
}

TEST(Payload, EqualOnesAreEqual) {
  EXPECT_FALSE(compare_payload(pickled(), pickled()));
  EXPECT_FALSE(compare_payload(in_safetensors(), in_safetensors()));
}

// The changes by which round_trip asks whether it would have noticed.
TEST(Payload, EveryChangeIsNoticedByPath) {
  const Checkpoint zip = pickled(), file = in_safetensors();
  const auto where = [](const Checkpoint& want, const std::optional<Checkpoint>& got) {
    const std::optional<Mismatch> found = compare_payload(want, got.value());
    return found ? found->where : "";
  };
  EXPECT_EQ(where(zip, with_flipped_bit(zip)), "layer.weight: element 3");
  EXPECT_EQ(where(zip, with_moved_device(zip)), "layer.weight: device");
  EXPECT_EQ(where(zip, with_changed_value(zip)), "frozen");
  EXPECT_EQ(where(file, with_flipped_bit(file)), "a: element 3");
  EXPECT_EQ(where(file, with_changed_value(file)), "__metadata__.changed");
  EXPECT_FALSE(with_moved_device(file)) << "safetensors name no device";
}

// A provider that answers with another container loses what that has no place for.
TEST(Payload, WhatOneContainerCannotHoldCounts) {
  const std::optional<Mismatch> found = compare_payload(pickled(), in_safetensors());
  ASSERT_TRUE(found);
}

TEST(Payload, DigestDependsOnNamesAndBytesAndNotOnOrder) {
  Checkpoint a = checkpoint(), b = checkpoint();
  std::swap(b.tensors[0], b.tensors[1]);
  EXPECT_EQ(payload_digest(a), payload_digest(b));
  EXPECT_NE(payload_digest(a), payload_digest(*with_flipped_bit(a)));
  b.tensors[0].name += "x";
  EXPECT_NE(payload_digest(a), payload_digest(b));
}

// int8_row, bfloat16, [64, 256]: 64 * (256 + 4 + 1) bytes of 64 * 512.
SizeCount matching_count() {
  SizeCount count;
  const Scheme* scheme = find_scheme("int8_row");
  const WeightShape shape{DType::bfloat16, 64, 256};
  const uint64_t expected = scheme->payload_bytes(shape);
  count.weights = {{"w", scheme, shape, expected, expected, expected, 64 * 512}};
  count.payload_bytes = count.expected_bytes = expected;
  count.file_bytes = expected + 2000;
  count.inner_tensors = 3;
  return count;
}

struct SizeChange {
  const char* name;
  void (*make)(SizeCount&);
  const char* reason;
};
class OneSizeChange : public testing::TestWithParam<SizeChange> {};

TEST_P(OneSizeChange, IsFound) {
  const auto targets = load_size_targets(targets_folder());
  SizeCount count = matching_count();
  EXPECT_FALSE(size_finding(count, targets)) << size_finding(count, targets)->reason;
  GetParam().make(count);
  const std::optional<SizeFinding> found = size_finding(count, targets);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->reason, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Size, OneSizeChange,
    testing::Values(SizeChange{"weight", [](SizeCount& c) { ++c.weights[0].element_bytes; },
                               "payload of a weight"},
                    SizeChange{"storage", [](SizeCount& c) { ++c.payload_bytes; }, "payload of the file"},
                    SizeChange{"unseen", [](SizeCount& c) { c.unseen_bytes = 3; }, "payload of the file"},
                    SizeChange{"container", [](SizeCount& c) { c.file_bytes += 20000; }, "container"},
                    SizeChange{"target", [](SizeCount& c) { c.weights[0].dense_bytes /= 2; }, "reduction"}),
    [](const auto& info) { return std::string(info.param.name); });

// One static scale of x for all layers is one tensor of the file: quantize_ of a model with
// Int8StaticActivation...
TEST(Size, APartThatTwoWeightsShareCountsOnce) {
  Checkpoint c = checkpoint();
  NamedTensor second = c.tensors[0];
  second.name = "b.weight";
  for (InnerTensor& inner : second.payload)
    if (inner.name != "zero_point") inner.tensor = tensor_of_bytes(inner.tensor.dtype, inner.tensor.shape);
  c.tensors.push_back(second);
  c.file_bytes += 20;
  const SizeCount count = count_size(c, {});
  EXPECT_EQ(count.payload_bytes, 2 * (12 + 8 + 2) - 2 + 4);
  EXPECT_EQ(count.expected_bytes, count.payload_bytes);
  EXPECT_FALSE(size_finding(count, load_size_targets(targets_folder())));
}

TEST(Size, AWholeWeightThatTwoNamesShareCountsOnce) {
  Checkpoint c = checkpoint();
  c.tensors.push_back(c.tensors[0]);
  c.tensors.back().name = "tied.weight";
  EXPECT_EQ(count_size(c, {}).expected_bytes, 12 + 8 + 2 + 4);
}

// transformers repeats the metadata of all tensors in every shard.
TEST(Size, EveryShardMayAddWhatAFileMay) {
  const auto targets = load_size_targets(targets_folder());
  SizeCount count = matching_count();
  const uint64_t one = container_bound_bytes(count, targets);
  count.files = 3;
  EXPECT_EQ(container_bound_bytes(count, targets), 3 * one);
}

// Returns the reduction of one weight of the expected size, and the reduction that is required.
std::pair<double, std::optional<double>> expected_reduction(const Scheme& scheme, const WeightShape& shape,
                                                            const nlohmann::ordered_json& targets) {
  const uint64_t expected = scheme.payload_bytes(shape);
  const uint64_t dense = bytes_of(shape.dtype, std::vector<int64_t>{shape.n, shape.k});
  return {static_cast<double>(dense) / static_cast<double>(expected),
          minimum_reduction({"w", &scheme, shape, expected, expected, expected, dense}, targets)};
}

TEST(Size, EverySchemeHasATargetThatItsFormulaMeets) {
  const auto targets = load_size_targets(targets_folder());
  for (const Scheme* scheme : schemes())
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
      const auto [reduction, least] = expected_reduction(*scheme, {dtype, 64, 1024}, targets);
      ASSERT_TRUE(least) << scheme->name();
      EXPECT_GE(reduction, *least) << scheme->name() << " " << dtype_name(dtype);
      EXPECT_LT(reduction, *least * 1.02) << scheme->name() << " " << dtype_name(dtype)
                                          << ": a target this far below the formula stops nothing";
    }
}

TEST(Size, NoTargetRefusesTheNarrowestWeightsThatItIsFor) {
  const auto targets = load_size_targets(targets_folder());
  for (const Scheme* scheme : schemes()) {
    size_t asked = 0;
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
      for (const int64_t n : {1, 128})
        for (int64_t k = 8; k <= 1024; k += 8) {
          const WeightShape shape{dtype, n, k};
          if (scheme->refusal(shape)) continue;
          const auto [reduction, least] = expected_reduction(*scheme, shape, targets);
          if (!least) continue;
          ++asked;
          EXPECT_GE(reduction, *least)
              << scheme->name() << " " << dtype_name(dtype) << " " << n << " x " << k;
        }
    EXPECT_GT(asked, 0) << scheme->name();
  }
}

}  // namespace
}  // namespace qcts
