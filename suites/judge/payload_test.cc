// SPDX-License-Identifier: BSD-3-Clause
// Tests the comparisons of round_trip, size and reject: every field that may differ is noticed and named.
#include "suites/judge/payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/judge/size.h"

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

struct Change {
  const char* name;
  void (*make)(Checkpoint&);
  const char* where;
};
class OneChange : public testing::TestWithParam<Change> {};

TEST_P(OneChange, IsNoticedAndNamed) {
  const Checkpoint want = checkpoint();
  Checkpoint got = checkpoint();
  EXPECT_FALSE(compare_payload(want, got)) << "equal payloads must compare equal";
  GetParam().make(got);
  const std::optional<Mismatch> found = compare_payload(want, got);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->where, HasSubstr(GetParam().where));
  EXPECT_NE(found->want, found->got);
}

INSTANTIATE_TEST_SUITE_P(
    Payload, OneChange,
    testing::Values(
        Change{"name", [](Checkpoint& c) { c.tensors[0].name = "b"; }, "name of a tensor"},
        Change{"order", [](Checkpoint& c) { std::swap(c.tensors[0], c.tensors[1]); }, "name of a tensor"},
        Change{"count", [](Checkpoint& c) { c.tensors.pop_back(); }, "number of tensors"},
        Change{"type", [](Checkpoint& c) { c.tensors[0].type = "Tensor"; }, "a.weight: type"},
        Change{"attribute",
               [](Checkpoint& c) {
                 c.tensors[0].attributes["block_size"] = {1, 5};
               },
               "attributes"},
        Change{"dtype", [](Checkpoint& c) { c.tensors[0].payload[0].tensor.dtype = DType::uint8; },
               "qdata: dtype"},
        Change{"shape",
               [](Checkpoint& c) {
                 c.tensors[0].payload[0].tensor.shape = {3, 4};
               },
               "qdata: shape"},
        Change{"stride",
               [](Checkpoint& c) {
                 c.tensors[0].payload[0].tensor.stride = {1, 2};
               },
               "qdata: stride"},
        Change{"sharing",
               [](Checkpoint& c) {
                 c.tensors[0].payload[2].tensor.storage = c.tensors[0].payload[0].tensor.storage;
               },
               "zero_point: storage"},
        Change{"element",
               [](Checkpoint& c) {
                 Tensor& t = c.tensors[0].payload[0].tensor;
                 std::vector<std::byte> bytes = row_major_bytes(t);
                 bytes[7] ^= std::byte{0x80};
                 t = make_tensor(t.dtype, t.shape, bytes);
               },
               "a.weight qdata"},
        Change{"flipped_bit", [](Checkpoint& c) { c = *with_flipped_bit(c); }, "a.bias data: element 1"}),
    [](const auto& info) { return std::string(info.param.name); });

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

// torchao's Int8StaticActivationInt8WeightConfig stores one static scale of x for all layers, as one tensor
// of the file.
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
