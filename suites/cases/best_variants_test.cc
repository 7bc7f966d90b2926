// SPDX-License-Identifier: BSD-3-Clause
// Tests the choice of best variants: a kernel that refuses a case is replaced only by one that serves it, and
// a case that all refuse keeps one kernel, to report the reason. Kernels are asked once, all together.
#include "suites/cases/best_variants.h"

#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/schemes/scheme.h"
#include "suites/base/paths.h"
#include "suites/cases/expand.h"
#include "suites/cases/offers.h"

namespace qcts {
namespace {

using testing::ElementsAre;

// Offers of one provider that every machine runs, best first, and their kernels' answers.
struct Kernels {
  Kernels(const std::string& provider, bool is_builtin, std::vector<bool> answers)
      : serves(std::move(answers)) {
    for (size_t i = 0; i < serves.size(); ++i)
      offers.push_back({.provider = provider,
                        .op = Op::linear,
                        .scheme = "int8_row",
                        .variant = "variant" + std::to_string(i),
                        .is_builtin = is_builtin});
  }
  std::vector<bool> serves;
  std::vector<Offer> offers;
};

Case linear_case() {
  Case c;
  c.id.op = Op::linear;
  c.scheme = find_scheme("int8_row");
  c.question = SyntheticQuestion{{Generator::noise, {DType::bfloat16, 37, 216}, 5}};
  return c;
}

// Returns the indices of the chosen offers.
std::vector<size_t> taken(const Case& c, const Kernels& of) {
  std::vector<const Offer*> found;
  for (const Offer& each : of.offers) found.push_back(&each);
  const auto place = [&](const Offer& each) { return static_cast<size_t>(&each - of.offers.data()); };
  std::vector<size_t> places;
  for (const Offer* each : best_of(c, found, [&](const Offer& offer) { return of.serves[place(offer)]; }))
    places.push_back(place(*each));
  return places;
}

TEST(BestVariants, TheFirstThatServesTheCaseIsTaken) {
  const Case c = linear_case();
  EXPECT_THAT(taken(c, Kernels("builtin", true, {true, true})), ElementsAre(0));
  EXPECT_THAT(taken(c, Kernels("builtin", true, {false, true})), ElementsAre(1));
  EXPECT_THAT(taken(c, Kernels("builtin", true, {false, true, true})), ElementsAre(1));
}

TEST(BestVariants, WhatAllRefuseIsNotLost) {
  EXPECT_THAT(taken(linear_case(), Kernels("builtin", true, {false, false})), ElementsAre(0));
}

TEST(BestVariants, WhatThisMachineLacksIsNotTaken) {
  Kernels kernels("builtin", true, {true, true});
  kernels.offers[0].is_runnable = false;
  EXPECT_THAT(taken(linear_case(), kernels), ElementsAre(1));
}

TEST(BestVariants, APluginIsNotAsked) {
  EXPECT_THAT(taken(linear_case(), Kernels("acme", false, {false, true})), ElementsAre(0));
}

TEST(BestVariants, EachProviderHasItsOwn) {
  const Kernels ours("builtin", true, {false, true}), theirs("acme", false, {true, true});
  std::vector<const Offer*> found;
  for (const Kernels* of : {&ours, &theirs})
    for (const Offer& each : of->offers) found.push_back(&each);
  EXPECT_THAT(best_of(linear_case(), found, [&](const Offer& offer) { return &offer != &ours.offers[0]; }),
              ElementsAre(&ours.offers[1], &theirs.offers[0]));
}

qcts_status serves_small_bfloat16(const qcts_problem* p, char* why, size_t why_size) {
  std::snprintf(why, why_size, "another shape or dtype");
  const bool all = p->x_dtype == QCTS_BF16 && p->y_dtype == QCTS_BF16 && p->w_dtype == QCTS_BF16;
  return all && p->m == 5 && p->n == 37 && p->k == 216 ? QCTS_OK : QCTS_UNSUPPORTED;
}

TEST(BestVariants, AKernelIsAskedAboutTheShapeAndDtypesOfTheCase) {
  qcts_kernel kernel = {};
  kernel.variant = "scalar";
  kernel.supports = serves_small_bfloat16;
  const Implementation implementation{"builtin", &kernel, true};
  Case c = linear_case();
  c.implementation = &implementation;
  EXPECT_TRUE(is_served(c));
  std::get<SyntheticQuestion>(c.question).input.m = 6;
  EXPECT_FALSE(is_served(c));
  c.question = SyntheticQuestion{{Generator::noise, {DType::float32, 37, 216}, 5}};
  EXPECT_FALSE(is_served(c));
}

class BestOfPlan : public testing::TestWithParam<const char*> {
 protected:
  BestOfPlan() : plan(load_plan(plan_path(GetParam()))) {
    registry.add(builtin_provider());
    offers.add(offers_of(registry, "builtin"));
  }
  Registry registry;
  OfferTable offers;
  const Plan plan;
};

TEST_P(BestOfPlan, AllKernelsAreAskedAtOnceAndNoneByExpansion) {
  size_t rounds = 0, questions = 0;
  const AskSupport ask = [&](std::span<const SupportQuestion> asked) {
    ++rounds;
    questions = asked.size();
    return std::vector<bool>(asked.size(), false);
  };
  expand_paired(plan, {}, offers, ask);
  EXPECT_EQ(rounds, 1u);
  EXPECT_GT(questions, 10u);
}

INSTANTIATE_TEST_SUITE_P(Plans, BestOfPlan, testing::Values("quick", "default", "latency", "latency_quick"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace qcts
