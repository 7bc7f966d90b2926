// SPDX-License-Identifier: BSD-3-Clause
// Tests the plans: all of them load, and an invalid one is refused with the name of the bad field.
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "suites/base/paths.h"
#include "suites/cases/plan.h"

namespace qcts {
namespace {

TEST(Plans, AllOfThemCanBeRead) {
  for (const std::string& name : plan_names()) EXPECT_NO_THROW(load_plan(plan_path(name))) << name;
}

nlohmann::ordered_json default_plan() {
  return nlohmann::ordered_json::parse(std::ifstream(plan_path("default")));
}

Plan load(const nlohmann::ordered_json& json) {
  const ScratchFolder scratch;
  std::ofstream(scratch.path() / "p.json") << json;
  return load_plan(scratch.path() / "p.json");
}

TEST(Plan, TheKindsOfMutantsThatItKillsAreTyped) {
  EXPECT_THAT(load_plan(plan_path("quick")).kills, testing::ElementsAre(MutantKind::kernel));
  EXPECT_THAT(load_plan(plan_path("quick_cuda")).kills, testing::ElementsAre(MutantKind::cuda));
  EXPECT_THAT(load_plan(plan_path("quick_files")).kills, testing::ElementsAre(MutantKind::format));
  EXPECT_THAT(load_plan(plan_path("nightly")).kills, testing::IsEmpty());
}

TEST(Plan, OldKeysAreAccepted) {
  nlohmann::ordered_json json = default_plan();
  json["every_input"] = false;
  json["schemes_an_input"] = 5;
  json["latency_weights"] = {"warm"};
  for (const char* key : {"all_inputs", "schemes_per_input", "latency_cache_states"}) json.erase(key);
  const Plan plan = load(json);
  EXPECT_FALSE(plan.all_inputs);
  EXPECT_EQ(plan.schemes_per_input, 5);
  EXPECT_EQ(plan.latency_cache_states, std::vector<std::string>{"warm"});
}

TEST(Plan, AKeyBesideItsOldNameIsRefused) {
  nlohmann::ordered_json json = default_plan();
  json["every_input"] = json["all_inputs"];
  EXPECT_THROW(load(json), std::runtime_error);
}

class BrokenPlan : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BrokenPlan, IsRefusedByTheNameOfItsField) {
  nlohmann::ordered_json json = default_plan();
  const auto& [field, value] = GetParam();
  if (std::strlen(value) == 0)
    json.erase(field);
  else
    json[field] = nlohmann::ordered_json::parse(value);
  try {
    load(json);
    FAIL() << field << " = " << value << " was taken";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(field));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plan, BrokenPlan,
    testing::Values(
        std::pair{"kinds", ""}, std::pair{"kinds", "[]"}, std::pair{"kinds", "[\"numeric\"]"},
        std::pair{"kinds", "[\"size\", \"size\"]"}, std::pair{"all_inputs", "1"},
        std::pair{"latency_budgets", "3"}, std::pair{"schemes_per_input", "0"},
        std::pair{"schemes_a_family", R"({"deep": -1})"}, std::pair{"schemes_a_family", R"({"depth": 1})"},
        std::pair{"emulated_never", "[\"depth\"]"}, std::pair{"determinism_share", "0"},
        std::pair{"far_schemes", "[\"int9\"]"}, std::pair{"far_schemes", "[\"nf4_b64_s256\"]"},
        std::pair{"cover", "1"}, std::pair{"kills", "[\"kernels\"]"}, std::pair{"cover", "[\"noise\"]"},
        std::pair{"case_timeout_s", "0"}, std::pair{"latency_m", "[0]"}, std::pair{"latency_ops", ""},
        std::pair{"latency_ops", "[\"linaer\"]"}, std::pair{"latency_schemes", "[\"int9\"]"},
        std::pair{"latency_activations", "[\"dynamic\"]"}, std::pair{"latency_cache_states", "[\"hot\"]"},
        std::pair{"latency_best_only", "1"}, std::pair{"latency_blocks", "[]"},
        std::pair{"latency_blocks", "{}"},
        std::pair{"latency_blocks", R"({"schemes": ["int9"], "m": [1], "shrink": 4})"},
        std::pair{"latency_blocks", R"({"schemes": [], "m": [1], "shrink": 4})"},
        std::pair{"latency_blocks", R"({"schemes": ["int8_row"], "m": [0], "shrink": 4})"},
        std::pair{"latency_blocks", R"({"schemes": ["int8_row"], "m": [], "shrink": 4})"},
        std::pair{"latency_blocks", R"({"schemes": ["int8_row"], "m": [1], "shrink": 3})"},
        std::pair{"latency_blocks", R"({"schemes": ["int8_row"], "m": [1], "shrink": 4, "n": 1})"},
        std::pair{"latency_shapes", "[[1]]"}));

}  // namespace
}  // namespace qcts
