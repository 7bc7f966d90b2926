// SPDX-License-Identifier: BSD-3-Clause
// Tests the table of synthetic inputs: a family for every generator, each used, with its own seeds.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "suites/inputs/input_families.h"
#include "suites/inputs/inputs.h"

namespace qcts {
namespace {

TEST(Inputs, EveryGeneratorHasItsFamily) {
  ASSERT_EQ(input_families().size(), static_cast<size_t>(kGeneratorCount));
  for (int i = 0; i < kGeneratorCount; ++i)
    EXPECT_EQ(input_family(static_cast<Generator>(i)).generator, static_cast<Generator>(i)) << i;
}

TEST(Inputs, SeedsDifferAndEveryFamilyIsUsed) {
  std::map<uint64_t, std::string> seeds;
  std::set<Generator> used;
  std::set<Op> ops;
  for (const InputFamily& family : input_families()) ops.insert(family.ops.begin(), family.ops.end());
  for (const Scheme* scheme : schemes())
    for (const Op op : ops)
      for (const Layout layout : scheme->layouts())
        for (const Synthetic& input : synthetic_inputs(Kind::numerics, op, *scheme, layout, InputSet::all)) {
          used.insert(input.generator);
          const std::string name = input_name(input, op, layout);
          EXPECT_EQ(seeds.try_emplace(input.seed, name).first->second, name);
          EXPECT_FALSE(scheme->refusal(input.weight)) << name;
        }
  // A family without operations is asked only by the names of cases.
  const auto in_plans = [](const InputFamily& family) { return !family.ops.empty(); };
  EXPECT_EQ(static_cast<int64_t>(used.size()), std::ranges::count_if(input_families(), in_plans));
}

}  // namespace
}  // namespace qcts
