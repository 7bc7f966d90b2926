// SPDX-License-Identifier: BSD-3-Clause
// Tests which kernels a latency plan times: the best variants of each provider, and others only where they
// may win.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/cases/case.h"
#include "suites/cases/expand.h"
#include "suites/cases/offers.h"
#include "suites/inputs/inputs.h"
#include "suites/providers/problem.h"

namespace qcts {
namespace {

// Each provider's best variant (also without tiles for a single row, also bytes for a few rows), cold and
// warm as separate cases, no scalar prefill, no emulated kernel, and the weight in a dtype that its scheme
// accepts.
TEST(Expand, TimesWhatThePlanNames) {
  Registry registry;
  registry.add(builtin_provider());
  Plan plan = load_plan(plan_path("latency"));
  plan.latency_cache_states = {"cold", "warm"};
  const std::vector<Case> cases = expand(plan, {{}, {}, &registry});
  std::map<std::string, int> implementations;
  std::map<std::string, DType> dtypes;
  for (const Case& c : cases) {
    ASSERT_EQ(c.id.kind, Kind::latency);
    const bool tiles = c.variant() == "amx",
               bytes = c.variant().ends_with("vnni") && c.activation() == kWeightOnly;
    const bool apart =
        c.id.op == Op::linear && ((tiles && c.synthetic()->m == 1) || (bytes && c.synthetic()->m <= 4));
    if (!apart) ++implementations[c.id.text()];
    EXPECT_TRUE(c.id.input.ends_with(c.is_warm() ? "_warm" : "_cold")) << c.id.text();
    EXPECT_FALSE(c.scheme->refusal(c.synthetic()->weight)) << c.id.text();
    EXPECT_FALSE(c.id.op == Op::linear && c.synthetic()->m >= kPrefillRows && c.variant() == "scalar")
        << c.id.text();
    dtypes[std::string(c.scheme->name())] = c.synthetic()->weight.dtype;
  }
  for (const auto& [id, count] : implementations) EXPECT_EQ(count, 1) << id;
  EXPECT_EQ(dtypes["int8_row"], DType::bfloat16);
  EXPECT_EQ(dtypes["tinyq_w8a32"], DType::float32) << "its source, which is the dense baseline's too";
}

qcts_status always(const qcts_problem*, char*, size_t) { return QCTS_OK; }
qcts_status nothing(const qcts_problem*) { return QCTS_OK; }

// Returns the variants that the latency plan times of a provider with six, by rows of x. `scheme`: as in
// qcts_kernel::scheme.
std::map<int64_t, std::set<std::string>> timed_variants(const char* scheme) {
  Registry registry;
  registry.add(builtin_provider());
  Plan plan = load_plan(plan_path("latency"));
  plan.latency_m = {1, 4, 5, 512};
  std::erase(plan.latency_schemes, "tinyq_w8a16");  // its x is bfloat16
  constexpr int kCount = 6;
  qcts_kernel kernels[kCount] = {};
  const qcts_kernel* table[kCount];
  const char* variants[kCount] = {"amx", "avx512vbmi", "avx512bf16", "avx512", "avx512vnni", "avx2"};
  for (int i = 0; i < kCount; ++i) {
    qcts_kernel& kernel = kernels[i];
    kernel.struct_size = sizeof kernel;
    kernel.op = QCTS_OP_LINEAR;
    kernel.scheme = scheme;
    kernel.variant = variants[i];
    kernel.numerics.struct_size = sizeof kernel.numerics;
    kernel.supports = always;
    kernel.run = nothing;
    table[i] = &kernel;
  }
  qcts_provider provider = {};
  provider.struct_size = sizeof provider;
  provider.abi_version = QCTS_ABI_VERSION;
  provider.name = "acme";
  provider.n_kernels = kCount;
  provider.kernels = table;
  registry.add(provider);
  std::map<int64_t, std::set<std::string>> timed;
  for (const Case& c : expand(plan, {{}, {}, &registry}))
    if (c.implementation != nullptr && c.implementation->provider == "acme")
      timed[c.synthetic()->m].insert(c.variant());
  return timed;
}

// For few rows, where the order cannot tell which variant reads the weights faster, all are timed; for more
// rows only the first. With quantized x all variants multiply bytes.
TEST(Expand, TimesTilesBytesAndFloatsApartForFewRows) {
  EXPECT_EQ(timed_variants("int8_row"),
            (std::map<int64_t, std::set<std::string>>{{1, {"amx", "avx512vbmi", "avx512vnni"}},
                                                      {4, {"amx", "avx512vnni"}},
                                                      {5, {"amx"}},
                                                      {512, {"amx"}}}));
  EXPECT_EQ(timed_variants("int8_row:dyn_row_sym"),
            (std::map<int64_t, std::set<std::string>>{
                {1, {"amx", "avx512vbmi"}}, {4, {"amx"}}, {5, {"amx"}}, {512, {"amx"}}}));
}

// A kernel that refuses the case is replaced by one that serves it, if there is one: kernels that multiply
// pairs of bfloat16 serve two of mx's five element types, and no float32 x of tinyq.
TEST(Expand, TimesAKernelThatServesTheCase) {
  Registry registry;
  registry.add(builtin_provider());
  Plan plan = load_plan(plan_path("latency"));
  plan.latency_ops = {Op::linear};
  plan.latency_blocks.reset();
  plan.latency_m = {1, 16};
  plan.latency_schemes = {"mxfp8_e4m3_floor", "mxfp8_e5m2_floor", "mxfp6_e2m3_floor", "tinyq_w8a32"};
  size_t seen = 0;
  for (const Case& c : expand(plan, {{}, {}, &registry})) {
    if (c.implementation == nullptr || c.implementation->provider != "builtin") continue;
    const bool pairs = c.variant() == "amx" || c.variant() == "avx512bf16" || c.variant() == "avx512vbmi";
    EXPECT_TRUE(!pairs || c.scheme->name() == "mxfp8_e4m3_floor") << c.full_id();
    ++seen;
  }
  EXPECT_GE(seen, 4 * plan.latency_shapes.size() * plan.latency_m.size());
}

// With a float32 x, kernels for pairs of bfloat16 are likely to refuse.
TEST(Expand, TimesWhatTakesAWideXBesidePairs) {
  const std::set<std::string> both = {"amx", "avx512"}, all = {"amx", "avx512", "avx512vnni"};
  EXPECT_EQ(timed_variants("tinyq"),
            (std::map<int64_t, std::set<std::string>>{{1, all}, {4, all}, {5, both}, {512, both}}));
}

TEST(Expand, APrefillHasMoreOfTheBudget) {
  const auto share = [](Op op, int64_t m) {
    Case c;
    c.id = {Kind::latency, op, "int8_row", "x"};
    c.question = TimedQuestion{{Generator::noise, {DType::bfloat16, 64, 64}, m}};
    return budget_share(c);
  };
  EXPECT_EQ(share(Op::linear, 1), 1);
  EXPECT_EQ(share(Op::linear, 16), 1);
  EXPECT_EQ(share(Op::dequantize, 512), 1) << "it has no rows of x";
  EXPECT_EQ(share(Op::linear, 512), kPrefillBudgetShare);
}

}  // namespace
}  // namespace qcts
