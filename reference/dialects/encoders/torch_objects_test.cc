// SPDX-License-Identifier: BSD-3-Clause
// Tests names in nested containers, tensors with several names, and that a small graph cannot produce an
// unbounded list of names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/encode.h"

namespace qcts {
namespace {

using testing::ElementsAre;

pickle::Ref tensor() { return tensor_node(make_tensor(DType::uint8, {1}, std::vector<std::byte>(1)), "0"); }

pickle::Ref dict_of(std::vector<std::pair<std::string, pickle::Ref>> entries) {
  const pickle::Ref node = pickle::dict();
  for (auto& [key, value] : entries) node->pairs.emplace_back(pickle::string(key), value);
  return node;
}

std::vector<std::string> names_of(const pickle::Ref& root) {
  std::vector<std::string> names;
  for (const TensorLeaf& leaf : tensor_leaves(root, {})) names.push_back(leaf.name);
  return names;
}

TEST(TensorLeaves, JoinsKeysAndIndicesInFileOrder) {
  const pickle::Ref root = dict_of({{"model", dict_of({{"b", tensor()}, {"a", tensor()}})},
                                    {"step", pickle::integer(3)},
                                    {"list", pickle::list({tensor(), pickle::none(), tensor()})}});
  EXPECT_THAT(names_of(root), ElementsAre("model.b", "model.a", "list.0", "list.2"));
}

TEST(TensorLeaves, SecondOfTwoEqualNamesIsKept) {
  const pickle::Ref root = dict_of({{"a.b", tensor()}, {"a", dict_of({{"b", tensor()}})}});
  EXPECT_THAT(names_of(root), ElementsAre("a.b", "a.b#2"));
}

TEST(TensorLeaves, ATensorAloneHasAName) { EXPECT_THAT(names_of(tensor()), ElementsAre("tensor")); }

TEST(TensorLeaves, SharedContainersCannotSpellEndlessNames) {
  pickle::Ref node = dict_of({{"x", tensor()}});
  for (int depth = 0; depth < 40; ++depth) node = pickle::list({node, node});
  try {
    tensor_leaves(node, {});
    FAIL() << "2^40 names";
  } catch (const Refused& error) {
    EXPECT_EQ(error.refusal().cls, RefusalClass::LimitExceeded);
  }
  pickle::Ref empty = pickle::dict();
  for (int depth = 0; depth < 40; ++depth) empty = pickle::list({empty, empty});
  EXPECT_TRUE(tensor_leaves(empty, {}).empty());
}

TEST(ReplaceTensors, ChangesOnePlaceOfASharedTensor) {
  const Scheme& scheme = *find_scheme("int8_row");
  const WeightShape shape = {DType::float32, 2, 4};
  const std::vector<std::byte> zeros(32);
  const SchemeTensor quantized = {&scheme, kPlain, DType::float32,
                                  2,       4,      scheme.quantize({DType::float32, 2, 4, zeros})};
  const Tensor weight = make_tensor(DType::float32, {2, 4}, std::vector<std::byte>(32), "0");
  const pickle::Ref shared = tensor_node(weight, "0");
  const pickle::Ref root = dict_of({{"embed.weight", shared}, {"head.weight", shared}});
  const auto file = MappedFile::from_bytes(write_torch_zip("archive", root, {weight.storage}));
  const TorchZip zip = read_torch_zip(file);
  const std::vector<TensorLeaf> leaves = tensor_leaves(zip.root, {});
  const EditedZip edited = replace_tensors(zip, {{leaves[1].place, &quantized}});
  const Checkpoint saved =
      read_checkpoint(MappedFile::from_bytes(write_torch_zip("archive", edited.root, edited.storages)));
  ASSERT_EQ(saved.tensors.size(), 2u);
  EXPECT_EQ(saved.tensors[0].type, "Tensor");
  EXPECT_EQ(saved.tensors[1].type, "Int8Tensor");
  EXPECT_EQ(saved.tensors[1].attributes, encoded_attributes(quantized));
  EXPECT_EQ(payload_bytes(saved), 32 + scheme.payload_bytes(shape));
}

}  // namespace
}  // namespace qcts
