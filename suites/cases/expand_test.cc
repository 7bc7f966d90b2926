// SPDX-License-Identifier: BSD-3-Clause
// Tests the list of cases: sorted, unique, within the alphabet, the same for the same sources, and complete
// over goldens and implementations.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/cases/case.h"
#include "suites/cases/expand.h"
#include "suites/cases/offers.h"
#include "suites/inputs/generate_parts.h"
#include "suites/inputs/inputs.h"
#include "suites/providers/problem.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

Golden golden(const std::string& id, std::vector<Golden::TensorInfo> tensors) {
  Golden g;
  g.id = id;
  g.tensors = std::move(tensors);
  return g;
}

Golden::TensorInfo tensor(const std::string& name, const std::string& scheme, const std::string& layout,
                          std::vector<std::string> expected) {
  return {name, scheme, layout, std::move(expected), {}, std::nullopt};
}

struct World {
  World() {
    registry.add(builtin_provider());
    goldens.push_back(
        golden("torchao_0_18_0/int8_row/toy_64_32_64",
               {tensor("linear1.weight", "int8_row", "plain", {"w", "codes", "dequant", "x", "y"}),
                tensor("Linear2.weight", "", "", {})}));
    goldens.push_back(
        golden("x/packed", {tensor("a.weight", "int4_tinygemm_g32", "cpu_avx2", {"codes", "dequant"}),
                            tensor("a_weight", "int8_row", "plain", {"dequant"})}));
    malformed.push_back({"z01_truncated", {}, {}, "cut", RefusalClass::Truncated, false, {"strict"}, {}});
  }
  std::vector<Case> expand_plan(const std::string& name) const {
    return expand(load_plan(plan_path(name)), {goldens, malformed, &registry});
  }
  std::vector<Golden> goldens;
  std::vector<Malformed> malformed;
  Registry registry;
};

std::vector<std::string> ids(const std::vector<Case>& cases) {
  std::vector<std::string> out;
  for (const Case& c : cases) out.push_back(c.full_id());
  return out;
}

std::vector<Case> asked_about(const std::vector<Case>& cases, const std::string& input) {
  std::vector<Case> found;
  for (const Case& c : cases)
    if (c.id.input == input) found.push_back(c);
  return found;
}

TEST(Expand, AsksTheKernelsOfASchemeAboutWeightsThatOtherLibrariesPacked) {
  World world;
  Golden::TensorInfo joined = tensor("fc.weight", "", "", {"dequant"});
  joined.kernel_scheme = "intx_b4_g32_sym";
  Golden::TensorInfo strange = joined;
  strange.name = "odd.weight";
  strange.outside_recipe = "scale: 1e-9";
  world.goldens.push_back(golden("gptq/one", {joined, strange}));
  const std::vector<Case> cases = world.expand_plan("nightly");
  EXPECT_FALSE(asked_about(cases, "gptq_one_fc").empty());
  for (const Case& c : asked_about(cases, "gptq_one_fc")) {
    EXPECT_EQ(c.id.op, Op::dequantize) << "no kernel here takes such an x as it is";
    EXPECT_EQ(kind_of(c).kind, InputKind::reachable);
  }
  EXPECT_FALSE(asked_about(cases, "gptq_one_fc_dyn_token_asym").empty());
  for (const Case& c : asked_about(cases, "gptq_one_fc_dyn_token_asym")) {
    EXPECT_EQ(c.id.op, Op::linear);
    EXPECT_EQ(c.scheme->name(), "intx_b4_g32_sym");
  }
  EXPECT_FALSE(asked_about(cases, "gptq_one_odd").empty());
  for (const Case& c : asked_about(cases, "gptq_one_odd"))
    EXPECT_EQ(kind_of(c).kind, InputKind::representable);
}

class EveryPlan : public testing::TestWithParam<const char*> {};

TEST_P(EveryPlan, IsSortedUniquePureAndInTheAlphabet) {
  const World world;
  const std::vector<Case> cases = world.expand_plan(GetParam());
  const std::vector<std::string> names = ids(cases);
  EXPECT_GT(names.size(), 100u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(ids(world.expand_plan(GetParam())), names);
  for (const Case& c : cases) {
    const std::string id = c.id.text();
    EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_/."), id.npos) << id;
    EXPECT_EQ(parse_case_id(id), c.id) << id;
    if (c.implementation != nullptr) {
      EXPECT_EQ(id.find(c.implementation->provider), id.npos) << "a provider's name in an id";
    }
  }
}

// One service of a kernel, with the policy of x if the op has one.
using Service = std::array<std::string, 4>;  // scheme, policy of x, op, implementation

// Visits every scheme that an implementation serves, with whether its linear can show a fault.
template <class Visit>
void for_each_service(const Registry& registry, const Visit& visit) {
  for (const Scheme* scheme : schemes())
    for (const ActivationInfo& policy : scheme->activations())
      for (const Op op :
           {Op::quantize, Op::quantize_activation, Op::dequantize, Op::pack, Op::unpack, Op::linear})
        for (const Implementation* kernel : registry.find(abi_op(op), scheme->family(), policy.name)) {
          const bool has_x = op == Op::linear || op == Op::quantize_activation;
          if (!has_x && policy.name != kWeightOnly) continue;
          const bool shows_nothing = op == Op::linear && scheme->family() != "fp8_sparse24" &&
                                     !has_finite_weights(*scheme, {DType::bfloat16, 37, 768});
          visit(*scheme,
                Service{std::string(scheme->name()), std::string(policy.name), std::string(op_name(op)),
                        kernel->name()},
                !shows_nothing);
        }
}

std::set<Service> asked_by(const std::vector<Case>& cases) {
  std::set<Service> asked;
  for (const Case& c : cases)
    if (c.id.kind == Kind::numerics && c.synthetic())
      asked.insert({std::string(c.scheme->name()), std::string(c.activation().name()),
                    std::string(op_name(c.id.op)), c.implementation->name()});
  return asked;
}

TEST(Expand, AsksEveryImplementationOfEverySchemeUnderEachPolicy) {
  const World world;
  const std::set<Service> asked = asked_by(world.expand_plan("nightly"));
  size_t shown = 0;
  for_each_service(world.registry, [&](const Scheme&, const Service& want, bool shows) {
    EXPECT_EQ(asked.contains(want), shows) << testing::PrintToString(want);
    shown += shows;
  });
  EXPECT_GT(shown, 1000u);
}

// The same for the quick plan, except in families of more than 60 schemes: there every scheme has some case,
// and every implementation has cases under each policy for a fifth of its schemes.
TEST(Expand, TheQuickPlanLeavesNoSchemeAndNoImplementationOut) {
  const World world;
  const std::set<Service> asked = asked_by(world.expand_plan("quick"));
  std::map<std::string_view, size_t> members;
  for (const Scheme* scheme : schemes()) ++members[scheme->family()];
  std::set<std::string> silent;
  std::map<std::array<std::string, 3>, std::pair<size_t, size_t>> shares;  // schemes with cases, all schemes
  for_each_service(world.registry, [&](const Scheme& scheme, const Service& want, bool shows) {
    if (members[scheme.family()] <= 60) {
      EXPECT_EQ(asked.contains(want), shows) << testing::PrintToString(want);
      return;
    }
    auto& [some, all] = shares[{want[1], want[2], want[3]}];
    some += asked.contains(want);
    all += shows;
    silent.insert(want[0]);
  });
  EXPECT_FALSE(shares.empty());
  for (const auto& [name, share] : shares)
    EXPECT_GE(5 * share.first, share.second) << testing::PrintToString(name);
  for (const Service& was : asked) silent.erase(was[0]);
  // The case sampled for these is a linear whose weights are all NaN.
  EXPECT_LE(silent.size(), 2u);
  for (const std::string& name : silent)
    EXPECT_FALSE(has_finite_weights(*find_scheme(name), {DType::bfloat16, 37, 768})) << name;
}

INSTANTIATE_TEST_SUITE_P(Expand, EveryPlan, testing::Values("default", "nightly", "quick"),
                         [](const auto& info) { return info.param; });

TEST(Expand, AsksEveryKindOfEveryFile) {
  const World world;
  const std::vector<Case> cases = world.expand_plan("default");
  std::map<std::pair<const Golden*, Kind>, int> files;
  for (const Case& c : cases)
    if (c.id.op == Op::file && c.golden() != nullptr) ++files[{c.golden(), c.id.kind}];
  for (const Golden& g : world.goldens)
    for (const Kind kind : {Kind::round_trip, Kind::assign, Kind::size})
      EXPECT_EQ((files[{&g, kind}]), 1) << g.id;
  EXPECT_EQ(
      std::count_if(cases.begin(), cases.end(), [](const Case& c) { return c.id.kind == Kind::reject; }), 1);
}

TEST(Expand, NamesAreWhatPeopleTypeAndKeep) {
  const World world;
  const std::vector<std::string> names = ids(world.expand_plan("default"));
  EXPECT_THAT(names, testing::IsSupersetOf({
                         "round_trip.file/int8_row/torchao_0_18_0_toy_64_32_64",
                         "assign.file/mixed/x_packed",
                         "reject.file/any/z01_truncated",
                         "numerics.dequantize/int8_row/torchao_0_18_0_toy_64_32_64_linear1/builtin_scalar",
                         "numerics.unpack/int4_tinygemm_g32/x_packed_a/builtin_scalar",
                         "numerics.dequantize/int8_row/x_packed_a_weight/builtin_scalar",
                         "numerics.linear/int8_row/noise_m1_n37_k216_bf16/builtin_scalar",
                     }));
}

TEST(Expand, AsksAGoldenOnlyWhatItHasEvidenceFor) {
  const World world;
  std::set<Op> ops;
  for (const Case& c : world.expand_plan("default")) {
    const auto* asked = std::get_if<TensorQuestion>(&c.question);
    if (asked != nullptr && asked->golden == &world.goldens[1] && asked->tensor == "a.weight")
      ops.insert(c.id.op);
  }
  EXPECT_EQ(ops, (std::set<Op>{Op::dequantize, Op::pack, Op::unpack}))
      << "no weight to quantize, no x and y for linear";
}

// Without LibTorch's plug-in no provider runs programs. That does not count as a refusal by the suite's own
// readers, which would block conformance.
TEST(Expand, AProgramWithoutARunnerIsNobodysFault) {
  World world;
  world.goldens.push_back(golden("torch_2_13_0/scripted", {}));
  world.goldens.back().flags = {"torchscript"};
  size_t seen = 0;
  for (const Case& c : world.expand_plan("default")) {
    if (c.id.kind != Kind::round_trip || c.golden() != &world.goldens.back()) continue;
    EXPECT_EQ(c.provider(), kAbsentRunner);
    EXPECT_EQ(c.full_id(), "round_trip.file/plain/torch_2_13_0_scripted");
    ++seen;
  }
  EXPECT_EQ(seen, 1u);
}

TEST(Expand, RefusesTwoCasesOfOneName) {
  World world;
  world.goldens.push_back(
      golden("x_packed", {tensor("a", "int8_row", "plain", {}), tensor("b", "fp8_row", "plain", {})}));
  EXPECT_THROW(world.expand_plan("default"), std::runtime_error);
}

TEST(Expand, ForOneVariantAProviderTakesOnlyWhatRunsHere) {
  const World world;
  Plan plan = load_plan(plan_path("quick"));
  plan.all_variants = false;
  std::map<std::string, int> implementations;
  for (const Case& c : expand(plan, {world.goldens, world.malformed, &world.registry}))
    if (c.implementation != nullptr) ++implementations[c.id.text()];
  ASSERT_FALSE(implementations.empty());
  for (const auto& [id, count] : implementations) EXPECT_EQ(count, 1) << id;
}

std::vector<Candidate> candidates_of(const std::vector<Case>& cases) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < cases.size(); ++i)
    candidates.push_back({{cases[i].id, cases[i].full_id(), cases[i].variant()}, 0, i});
  return candidates;
}

// Filtering during expansion leaves the same cases as selecting from the full list.
class FilteredExpansion : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { whole = new std::vector(candidates_of(World().expand_plan("default"))); }
  static void TearDownTestSuite() { delete whole; }
  static std::vector<std::string> selected(const Selection& selection, const std::vector<Candidate>& from) {
    std::vector<std::string> names;
    for (const Candidate& candidate : select(selection, from)) names.push_back(candidate.name.full_id);
    return names;
  }
  static inline std::vector<Candidate>* whole = nullptr;
};

TEST_P(FilteredExpansion, IsTheSelectionOfTheWhole) {
  const World world;
  Selection selection;
  selection.filters = {GetParam()};
  const std::vector<Case> filtered =
      expand(load_plan(plan_path("default")), {world.goldens, world.malformed, &world.registry}, selection);
  const std::vector<std::string> names = selected(selection, candidates_of(filtered));
  EXPECT_EQ(names, selected(selection, *whole));
  EXPECT_FALSE(names.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Filters, FilteredExpansion,
    testing::Values("scalar", "nf4", "*nf4*", "m5_n37", "*g128*noise*m5*avx2", "determinism.", "row/noise_m",
                    "file/mixed", "*zero*bf16/builtin*", "?oise*k216", "_dyn_", "linear/int8_row/",
                    "numerics.linear/int8_row/*", "8_row/", "_bf16/builtin_avx2", "k216_bf16/b", "/builtin_s",
                    "numerics.dequantize/int8_row/noise_n*_f32", "row/n*k216_bf16/builtin_*2", "ise_m",
                    "size.file/mixed/x_packed", "toy", "z01"));

}  // namespace
}  // namespace qcts
