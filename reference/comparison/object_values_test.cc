// SPDX-License-Identifier: BSD-3-Clause
// Tests the list of what an object graph holds besides its tensors.
#include "reference/comparison/object_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/dialects/encoders/encode.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

using pickle::Ref;
using testing::ElementsAre;
using testing::IsEmpty;

Ref weight() { return tensor_node(make_tensor(DType::uint8, {1}, std::vector<std::byte>(1)), "0"); }

Ref mapping(std::vector<std::pair<std::string, Ref>> entries) {
  const Ref node = pickle::dict();
  for (auto& [key, value] : entries) node->pairs.emplace_back(pickle::string(key), value);
  return node;
}

Ref object(const char* module, const char* name, pickle::Refs arguments, const Ref& state) {
  const Ref node = pickle::call(pickle::global(module, name), std::move(arguments));
  node->state = state;
  return node;
}

// "PATH: FIELD = TEXT" of those that are `part`.
std::vector<std::string> parts_of(const Ref& root, ObjectValue::Part part) {
  std::vector<std::string> found;
  for_each_object_value(root, [&](const ObjectValue& held) {
    if (held.part == part)
      found.push_back(held.path + (held.field.empty() ? "" : ": " + held.field) + " = " + held.text);
  });
  return found;
}

std::vector<std::string> values_of(const Ref& root) { return parts_of(root, ObjectValue::Part::value); }

TEST(ObjectValues, AStateDictHasNone) {
  const Ref root = object("collections", "OrderedDict", {}, mapping({{"_metadata", mapping({})}}));
  root->pairs.emplace_back(pickle::string("w"), weight());
  EXPECT_THAT(values_of(root), IsEmpty());
  EXPECT_THAT(parts_of(root, ObjectValue::Part::attribute), ElementsAre("_metadata = empty dict"));
  EXPECT_THAT(parts_of(root, ObjectValue::Part::property), ElementsAre(": type = OrderedDict"));
}

TEST(ObjectValues, AreNamedByTheirPath) {
  const Ref root =
      mapping({{"w", weight()},
               {"step", pickle::integer(3)},
               {"betas", pickle::list({pickle::none(), weight(), pickle::string("x")})},
               {"model", mapping({{"b", weight()}, {"log", pickle::list({})}, {"args", mapping({})}})}});
  EXPECT_THAT(values_of(root), ElementsAre("step = 3", "betas[0] = None", "betas[2] = \"x\"",
                                           "model.log = empty list", "model.args = empty dict"));
}

TEST(ObjectValues, AnObjectIsListedWithItsAttributes) {
  const Ref root = mapping(
      {{"ema", object("train", "Average", {},
                      mapping({{"shadow", mapping({{"w", weight()}})}, {"decay", pickle::integer(1)}}))},
       {"size", pickle::call(pickle::global("torch", "Size"), {pickle::integer(2)})}});
  EXPECT_THAT(values_of(root), ElementsAre("ema = Average()", "ema.decay = 1", "size = Size(2)"));
}

TEST(ObjectValues, ASharedContainerIsListedOnce) {
  const Ref shared = pickle::list({pickle::integer(1)});
  const Ref root = mapping({{"a", shared}, {"b", shared}});
  EXPECT_THAT(values_of(root), ElementsAre("a[0] = 1"));
  EXPECT_THAT(parts_of(root, ObjectValue::Part::property),
              ElementsAre("a: type = list", "b: identity = the object a"));
}

TEST(ObjectValues, ALongKeyAboveManyValuesIsRefused) {
  pickle::Refs many;
  for (int i = 0; i < 400; ++i) many.push_back(pickle::integer(i));
  const Ref root = mapping({{std::string(size_t{1} << 20, 'k'), pickle::list(std::move(many))}});
  try {
    for_each_object_value(root, [](const ObjectValue&) {});
    FAIL() << "400 MiB of paths";
  } catch (const Refused& error) {
    EXPECT_EQ(error.refusal().cls, RefusalClass::LimitExceeded);
  }
}

}  // namespace
}  // namespace qcts
