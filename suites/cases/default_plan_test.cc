// SPDX-License-Identifier: BSD-3-Clause
// Tests that the default plan leaves out only repetition of the complete plan.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/cases/expand.h"

namespace qcts {
namespace {

class DefaultPlan : public testing::Test {
 protected:
  DefaultPlan() { registry.add(builtin_provider()); }
  std::vector<Case> expanded(const char* plan) const {
    return expand(load_plan(plan_path(plan)), {{}, {}, &registry});
  }
  Registry registry;
};

// The kernel and the kind of input that a case tests, whatever the scheme of its family.
using AskedPart = std::tuple<Kind, Op, std::string, Layout, Policy, Generator, std::string>;

AskedPart asked_of(const Case& c) {
  return {c.id.kind,
          c.id.op,
          std::string(c.scheme->family()),
          c.layout(),
          c.activation(),
          c.synthetic()->generator,
          c.implementation->name()};
}

TEST_F(DefaultPlan, IsAPartOfTheCompletePlan) {
  std::set<std::string> complete;
  for (const Case& c : expanded("nightly")) complete.insert(c.full_id());
  const std::vector<Case> part = expanded("default");
  for (const Case& c : part) EXPECT_TRUE(complete.contains(c.full_id())) << c.full_id();
  EXPECT_GT(2 * part.size(), complete.size());
}

// But for what it leaves to the complete plan by name.
TEST_F(DefaultPlan, AsksEveryKernelForEveryKindOfInput) {
  const std::map<Generator, int64_t> limits = load_plan(plan_path("default")).schemes_a_family;
  const auto is_left_out = [&](Generator generator) {
    const auto limit = limits.find(generator);
    return limit != limits.end() && limit->second == 0;
  };
  ASSERT_TRUE(is_left_out(Generator::many_rows));  // "tall" has as many rows
  std::set<AskedPart> asked;
  for (const Case& c : expanded("default"))
    if (c.id.kind != Kind::latency) asked.insert(asked_of(c));
  size_t seen = 0;
  for (const Case& c : expanded("nightly")) {
    if (c.id.kind == Kind::latency || is_left_out(c.synthetic()->generator)) continue;
    EXPECT_TRUE(asked.contains(asked_of(c))) << c.full_id();
    ++seen;
  }
  EXPECT_GT(seen, 10000u);
}

TEST_F(DefaultPlan, AsksEveryKernelForLongInputsOnce) {
  const auto long_cases = [&](const char* plan) {
    std::map<AskedPart, std::set<std::string>> ids;
    for (const Case& c : expanded(plan)) {
      if (c.id.kind == Kind::latency || c.synthetic()->is_other_dtype) continue;
      const Generator generator = c.synthetic()->generator;
      if (generator == Generator::long_rows || generator == Generator::large ||
          generator == Generator::panels)
        ids[asked_of(c)].insert(c.id.text());
    }
    return ids;
  };
  const auto complete = long_cases("nightly"), once = long_cases("default");
  ASSERT_GT(complete.size(), 100u);
  for (const auto& [key, ids] : complete) {
    ASSERT_TRUE(once.contains(key)) << *ids.begin();
    EXPECT_EQ(once.at(key).size(), 1u) << *ids.begin();
    EXPECT_TRUE(ids.contains(*once.at(key).begin())) << *once.at(key).begin();
  }
}

// The inputs of the sizes of published models, by the kernel that is asked: one scheme of a family has all of
// them, and nightly asks more schemes.
TEST_F(DefaultPlan, AsksOneSchemeAFamilyForTheSizesOfModels) {
  struct Sizes {
    std::set<std::string> schemes;
    std::set<std::pair<int64_t, int64_t>> m_and_k;
  };
  const auto sizes_of = [&](const char* plan) {
    std::map<std::pair<AskedPart, Generator>, Sizes> found;
    for (const Case& c : expanded(plan)) {
      if (c.id.kind != Kind::numerics) continue;
      const Synthetic& input = *c.synthetic();
      if (input.generator != Generator::deep && input.generator != Generator::batches) continue;
      Sizes& sizes = found[{asked_of(c), input.generator}];
      sizes.schemes.insert(std::string(c.scheme->name()));
      sizes.m_and_k.insert({input.m, input.generator == Generator::deep ? input.weight.k : 0});
    }
    return found;
  };
  const std::set<std::pair<int64_t, int64_t>> deep = {{1, 16384}, {3, 16384}, {1, 28672},
                                                      {3, 28672}, {1, 53248}, {3, 53248}},
                                              batches = {{0, 0}, {256, 0}, {512, 0}, {1025, 0}},
                                              no_rows = {{0, 0}};
  const auto asked = sizes_of("default"), complete = sizes_of("nightly");
  ASSERT_GT(asked.size(), 50u);
  size_t of_more = 0, all_batches = 0;
  for (const auto& [key, sizes] : asked) {
    EXPECT_EQ(sizes.schemes.size(), 1u) << *sizes.schemes.begin();
    const bool one_size = sizes.m_and_k.size() == 1;  // of all policies that quantize x, one has all sizes
    EXPECT_EQ(sizes.m_and_k, key.second == Generator::deep ? deep
                             : one_size                    ? no_rows
                                                           : batches)
        << *sizes.schemes.begin();
    all_batches += sizes.m_and_k == batches;
    of_more += complete.at(key).schemes.size() > 1;
  }
  EXPECT_GT(of_more, asked.size() / 4);
  EXPECT_GT(all_batches, 50u);
}

TEST_F(DefaultPlan, AsksEveryOpForMoreRowsThan16BitsCount) {
  std::map<Op, std::set<std::string>> families;
  for (const Case& c : expanded("default"))
    if (c.id.kind == Kind::numerics && std::max(c.synthetic()->m, c.synthetic()->weight.n) > 0xFFFF)
      families[c.id.op].insert(std::string(c.scheme->family()));
  for (const Op op :
       {Op::quantize, Op::quantize_activation, Op::dequantize, Op::pack, Op::unpack, Op::linear})
    EXPECT_GE(families[op].size(), 3u) << op_name(op);
}

// Every m and dtype of every kind of input keeps some scheme.
TEST_F(DefaultPlan, DealsDeterminismToFewerSchemes) {
  using Input = std::tuple<AskedPart, DType, int64_t>;  // m
  const auto inputs = [&](const char* plan) {
    std::map<Input, size_t> cases;
    for (const Case& c : expanded(plan))
      if (c.id.kind == Kind::determinism)
        ++cases[{asked_of(c), c.synthetic()->weight.dtype, c.synthetic()->m}];
    return cases;
  };
  const auto complete = inputs("nightly"), dealt = inputs("default");
  size_t before = 0, after = 0;
  for (const auto& [input, cases] : complete) {
    const bool is_once = std::get<Generator>(std::get<AskedPart>(input)) == Generator::panels;
    EXPECT_TRUE(is_once || dealt.contains(input)) << std::get<2>(std::get<AskedPart>(input));
    before += cases;
  }
  for (const auto& [input, cases] : dealt) after += cases;
  EXPECT_LT(2 * after, before);
}

// The kind, op, family, layout and policy that a case tests, whichever kernel runs it.
using FamilyService = std::tuple<Kind, Op, std::string, Layout, Policy>;

FamilyService service_of(const Case& c) {
  return {c.id.kind, c.id.op, std::string(c.scheme->family()), c.layout(), c.activation()};
}

TEST_F(DefaultPlan, LeavesEmulatedVariantsAnInputOfEachService) {
  for (const char* plan : {"default", "quick"}) {
    std::set<FamilyService> all, emulated;
    for (const Case& c : expanded(plan)) {
      if (c.id.kind != Kind::numerics) continue;
      all.insert(service_of(c));
      if (c.for_emulated) emulated.insert(service_of(c));
    }
    EXPECT_GT(all.size(), 100u) << plan;
    EXPECT_EQ(emulated, all) << plan;
  }
}

TEST_F(DefaultPlan, GivesEmulatedVariantsFewInputsInQuick) {
  const std::vector<std::string> cover = load_plan(plan_path("quick")).cover.value();
  std::set<std::pair<FamilyService, Generator>> all, emulated;
  for (const Case& c : expanded("quick")) {
    if (std::ranges::find(cover, c.id.text()) != cover.end()) {
      EXPECT_TRUE(c.for_emulated) << c.full_id();
      continue;
    }
    all.insert({service_of(c), c.synthetic()->generator});
    if (!c.for_emulated) continue;
    EXPECT_NE(c.id.kind, Kind::determinism) << c.full_id();
    emulated.insert({service_of(c), c.synthetic()->generator});
  }
  EXPECT_LT(3 * emulated.size(), all.size());
}

// A grid of too many rows and a loop along a long row go wrong in different shapes.
TEST_F(DefaultPlan, GivesEmulatedVariantsOneTallAndOneWideSlowInputInNightly) {
  const std::vector<Generator> slow = load_plan(plan_path("nightly")).emulated_once_a_family;
  ASSERT_FALSE(slow.empty());
  std::map<std::tuple<FamilyService, Generator, bool>, std::set<std::string>> all, emulated;
  for (const Case& c : expanded("nightly")) {
    if (c.id.kind == Kind::latency || c.synthetic()->is_other_dtype) continue;
    if (std::ranges::find(slow, c.synthetic()->generator) == slow.end()) {
      EXPECT_TRUE(c.for_emulated) << c.full_id();
      continue;
    }
    const WeightShape& weight = c.synthetic()->weight;
    const std::tuple key(service_of(c), c.synthetic()->generator, weight.n > weight.k);
    all[key].insert(c.id.text());
    if (c.for_emulated) emulated[key].insert(c.id.text());
  }
  ASSERT_GT(all.size(), 100u);
  for (const auto& [key, ids] : all) {
    ASSERT_TRUE(emulated.contains(key)) << *ids.begin();
    EXPECT_EQ(emulated.at(key).size(), 1u) << *ids.begin();
  }
}

}  // namespace
}  // namespace qcts
