// SPDX-License-Identifier: BSD-3-Clause
// Tests the choice of best variants: a kernel that refuses a case is replaced only by one that serves it, and
// a case that all refuse keeps one kernel, to report the reason.
#include "suites/cases/best_variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/schemes/scheme.h"
#include "suites/cases/offers.h"

namespace qcts {
namespace {

qcts_status serves(const qcts_problem*, char*, size_t) { return QCTS_OK; }
qcts_status refuses(const qcts_problem*, char*, size_t) { return QCTS_UNSUPPORTED; }
qcts_status serves_bfloat16(const qcts_problem* p, char*, size_t) {
  const bool all = p->x_dtype == QCTS_BF16 && p->y_dtype == QCTS_BF16 && p->w_dtype == QCTS_BF16;
  return all && p->m == 5 && p->n == 37 && p->k == 216 ? QCTS_OK : QCTS_UNSUPPORTED;
}

using Supports = decltype(qcts_kernel::supports);

// Kernels that every machine runs, best first; `builtin`: as builtin kernels.
struct Kernels {
  Kernels(const std::string& provider, bool builtin, const std::vector<Supports>& all) : kernels(all.size()) {
    for (size_t i = 0; i < all.size(); ++i) {
      kernels[i].op = QCTS_OP_LINEAR;
      kernels[i].scheme = "int8_row";
      kernels[i].variant = "scalar";
      kernels[i].supports = all[i];
      offers.push_back({.provider = provider,
                        .op = Op::linear,
                        .scheme = "int8_row",
                        .variant = "scalar",
                        .own_kernel = builtin ? &kernels[i] : nullptr});
    }
  }
  std::vector<qcts_kernel> kernels;
  std::vector<Offer> offers;
};

Case linear_case() {
  Case c;
  c.id.op = Op::linear;
  c.scheme = find_scheme("int8_row");
  c.synthetic = Synthetic{Generator::noise, {DType::bfloat16, 37, 216}, 5};
  return c;
}

// Returns the indices of the chosen offers.
std::vector<size_t> taken(const Case& c, const Kernels& of) {
  std::vector<const Offer*> found;
  for (const Offer& each : of.offers) found.push_back(&each);
  std::vector<size_t> places;
  for (const Offer* each : best_of(c, found)) places.push_back(static_cast<size_t>(each - of.offers.data()));
  return places;
}

TEST(BestVariants, TheFirstThatServesTheCaseIsTaken) {
  const Case c = linear_case();
  EXPECT_THAT(taken(c, Kernels("builtin", true, {serves, serves})), testing::ElementsAre(0));
  EXPECT_THAT(taken(c, Kernels("builtin", true, {refuses, serves})), testing::ElementsAre(1));
  EXPECT_THAT(taken(c, Kernels("builtin", true, {refuses, serves_bfloat16, serves})),
              testing::ElementsAre(1));
}

TEST(BestVariants, WhatAllRefuseIsNotLost) {
  EXPECT_THAT(taken(linear_case(), Kernels("builtin", true, {refuses, refuses})), testing::ElementsAre(0));
}

TEST(BestVariants, APluginIsNotAsked) {
  EXPECT_THAT(taken(linear_case(), Kernels("acme", false, {refuses, serves})), testing::ElementsAre(0));
}

TEST(BestVariants, EachProviderHasItsOwn) {
  const Kernels ours("builtin", true, {refuses, serves}), theirs("acme", false, {serves, serves});
  std::vector<const Offer*> found;
  for (const Kernels* of : {&ours, &theirs})
    for (const Offer& each : of->offers) found.push_back(&each);
  EXPECT_THAT(best_of(linear_case(), found), testing::ElementsAre(&ours.offers[1], &theirs.offers[0]));
}

}  // namespace
}  // namespace qcts
