// SPDX-License-Identifier: BSD-3-Clause
// Tests the cases of a linear that reads packed planes: only a kernel that declares the layout gets them, and
// they change no other case.
#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/cases/expand.h"
#include "suites/inputs/generate.h"
#include "suites/inputs/input_families.h"
#include "suites/inputs/inputs.h"
#include "suites/providers/problem.h"

namespace qcts {
namespace {

// A provider with two kernels of one family.
struct Acme {
  explicit Acme(const char* layouts) {
    for (qcts_kernel* kernel : {&plain, &tiles}) {
      kernel->struct_size = sizeof *kernel;
      kernel->op = QCTS_OP_LINEAR;
      kernel->scheme = "int4_tinygemm";
      kernel->numerics.struct_size = sizeof kernel->numerics;
      kernel->supports = [](const qcts_problem*, char*, size_t) { return QCTS_OK; };
      kernel->run = [](const qcts_problem*) { return QCTS_OK; };
    }
    plain.variant = "plain";
    tiles.variant = "tiles";
    tiles.reads_layouts = layouts;
    table.struct_size = sizeof table;
    table.abi_version = QCTS_ABI_VERSION;
    table.name = "acme";
    table.choices = QCTS_CHOICE_HOSTILE_INPUTS;
    table.kernels = list;
    table.n_kernels = 2;
    registry.add(table);
  }
  std::vector<Case> expanded(const char* plan) const {
    return expand(load_plan(plan_path(plan)), {{}, {}, &registry});
  }
  std::set<std::string> ids(const char* plan) const {
    std::set<std::string> all;
    for (const Case& c : expanded(plan)) all.insert(c.full_id());
    return all;
  }
  qcts_kernel plain = {}, tiles = {};
  const qcts_kernel* const list[2] = {&plain, &tiles};
  qcts_provider table = {};
  Registry registry;
};

class PackedLinearInPlans : public testing::TestWithParam<const char*> {};

TEST_P(PackedLinearInPlans, HasCasesForTheKernelThatDeclaresTheLayout) {
  const std::set<std::string> without = Acme(nullptr).ids(GetParam());
  const std::set<std::string> with = Acme("tile_packed_4d").ids(GetParam());
  size_t packed = 0;
  for (const std::string& id : with) {
    if (without.contains(id)) continue;
    EXPECT_THAT(id, testing::AllOf(testing::HasSubstr("linear/int4_tinygemm_g"),
                                   testing::HasSubstr("_tile_packed_4d_"), testing::EndsWith("/acme_tiles")));
    ++packed;
  }
  EXPECT_GT(packed, 5u);
  for (const std::string& id : without) EXPECT_TRUE(with.contains(id)) << id << " is gone";
}
INSTANTIATE_TEST_SUITE_P(PackedLinear, PackedLinearInPlans, testing::Values("quick", "default", "nightly"),
                         [](const auto& info) { return info.param; });

TEST(PackedLinear, HasTheInputsOfTheTableInTheShapesOfPlain) {
  const Acme acme("tile_packed_4d,tile_packed_4d_v1");
  std::set<Generator> generators;
  std::set<std::string> layouts;
  std::set<Kind> kinds;
  const std::vector<Case> cases = acme.expanded("nightly");
  for (const Case& c : cases) {
    if (c.layout() == kPlain) continue;
    EXPECT_EQ(c.synthetic()->weight.dtype, DType::bfloat16) << c.full_id() << ": the layout takes no other";
    generators.insert(c.synthetic()->generator);
    layouts.emplace(c.layout().name());
    kinds.insert(c.id.kind);
  }
  for (const InputFamily& family : input_families())
    EXPECT_EQ(generators.contains(family.generator), family.of_packed_linear)
        << generator_name(family.generator);
  EXPECT_THAT(layouts, testing::ElementsAre("tile_packed_4d", "tile_packed_4d_v1"));
  EXPECT_THAT(kinds, testing::UnorderedElementsAre(Kind::numerics, Kind::determinism));
  const auto has = [&](const char* id) {
    return std::ranges::any_of(cases, [&](const Case& c) { return c.id.text() == id; });
  };
  EXPECT_TRUE(has("numerics.linear/int4_tinygemm_g128/noise_tile_packed_4d_m5_n40_k384_bf16"));
  EXPECT_TRUE(has("numerics.linear/int4_tinygemm_g32/columns_tile_packed_4d_v1_m7_n47_k32_bf16"));
}

// A vendor's linear may read any layout that the reference packs.
TEST(PackedLinear, HasInputsInEveryLayoutOfEveryScheme) {
  size_t seen = 0;
  for (const Scheme* scheme : schemes())
    for (const Layout layout : scheme->layouts()) {
      if (layout == kPlain) continue;
      SCOPED_TRACE(std::string(scheme->name()) + " " + std::string(layout.name()));
      const std::vector<Synthetic> inputs =
          synthetic_inputs(Kind::numerics, Op::linear, *scheme, layout, InputSet::few);
      EXPECT_FALSE(inputs.empty());
      for (const Synthetic& synthetic : inputs) {
        if (synthetic.weight.n * synthetic.weight.k > 100'000) continue;
        const KernelInput input = generate(*scheme, Op::linear, layout, synthetic, synthetic.seed).input;
        EXPECT_NO_THROW(require_planes(input.planes, scheme->plane_specs(input.weight)));
        EXPECT_NO_THROW(
            require_planes(packed_planes(input).value(), scheme->plane_specs(input.weight, layout)));
        ++seen;
      }
    }
  EXPECT_GT(seen, 100u);
}

TEST(PackedLinear, BindsToTheKernelThatReadsTheLayout) {
  const Acme acme("tile_packed_4d");
  for (const Case& c : acme.expanded("default"))
    if (c.layout() != kPlain) {
      EXPECT_EQ(c.implementation->kernel, &acme.tiles) << c.full_id();
      Case other = c;
      EXPECT_THROW(bind_offer(other, "acme", "plain", acme.registry), std::runtime_error) << c.full_id();
    }
}

}  // namespace
}  // namespace qcts
