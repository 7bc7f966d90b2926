// SPDX-License-Identifier: BSD-3-Clause
// Protects: each key that does not fit is in its own list, by name, and the types stand side by side.
#include "reference/comparison/keys.h"

#include <gtest/gtest.h>

namespace qcts {
namespace {

NamedTensor named(const char* name, const char* type, std::vector<int64_t> shape) {
  NamedTensor tensor;
  tensor.name = name, tensor.type = type, tensor.shape = std::move(shape);
  return tensor;
}

Checkpoint of(std::vector<NamedTensor> tensors) {
  Checkpoint checkpoint;
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

TEST(MatchKeys, AllOfThem) {
  NamedTensor weight = named("w", "Int8Tensor", {4, 2});
  weight.scheme = "int8_row";
  const KeyMatch match = match_keys(of({weight}), of({named("w", "Parameter", {4, 2})}));
  EXPECT_TRUE(match.all_matched());
  ASSERT_EQ(match.matched.size(), 1u);
  EXPECT_EQ(match.matched[0].before, "Parameter float32 [4,2]");
  EXPECT_EQ(match.matched[0].after, "Int8Tensor int8_row float32 [4,2]");
}

TEST(MatchKeys, EachMisfitByName) {
  const Checkpoint file = of({named("a", "Tensor", {2}), named("extra", "Tensor", {1})});
  const KeyMatch match = match_keys(file, of({named("lost", "Tensor", {1}), named("a", "Tensor", {3})}));
  EXPECT_FALSE(match.all_matched());
  EXPECT_EQ(match.missing, std::vector<std::string>{"lost"});
  EXPECT_EQ(match.unexpected, std::vector<std::string>{"extra"});
  ASSERT_EQ(match.mismatched.size(), 1u);
  EXPECT_EQ(match.mismatched[0].name, "a");
  EXPECT_TRUE(match.matched.empty());
}

}  // namespace
}  // namespace qcts
