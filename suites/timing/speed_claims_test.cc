// SPDX-License-Identifier: BSD-3-Clause
// Tests claims about speed on samples with a known truth: twice as slow fails, equal is no speed-up, and
// noise or doubt decides nothing.
#include "suites/timing/speed_claims.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/numerics/noise.h"

namespace qcts {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kConfidence = 0.95;
constexpr uint64_t kSeeds = 200;

// Times of `rounds` rounds around `us`, each off by up to about 2 * spread, with one call in twelve
// preempted.
std::vector<double> times_around(double us, double spread, uint64_t seed, size_t rounds) {
  std::vector<double> times(rounds);
  for (size_t i = 0; i < rounds; ++i)
    times[i] = us * std::exp(spread * noise(seed, i)) * (splitmix64(seed, i) % 12 == 0 ? 2 : 1);
  return times;
}

Interval ratio_of(double against_us, double subject_us, double spread, uint64_t seed, size_t rounds = 60) {
  return abba_interval(times_around(against_us, spread, 2 * seed, rounds),
                       times_around(subject_us, spread, 2 * seed + 1, rounds), kConfidence, seed);
}

SpeedClaim faster(const Interval& ratio, bool in_doubt = false) {
  return faster_claim("int4_tinygemm_g128 m=1 n=4096 k=4096", "dense bfloat16 (aten_aten)", ratio, in_doubt);
}

SpeedClaim as_fast(const Interval& ratio, bool in_doubt = false) {
  return as_fast_claim("block after loading", "before saving", ratio, in_doubt);
}

// A slowdown or speed-up of two is found in every run; of equal speeds none is said to be faster or slower.
TEST(SpeedClaims, AFactorOfTwoIsFoundAndEqualIsNoSpeedUp) {
  size_t undecided = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_EQ(faster(ratio_of(100, 200, 0.02, seed)).status, Status::fail) << seed;
    EXPECT_EQ(faster(ratio_of(200, 100, 0.02, seed)).status, Status::pass) << seed;
    EXPECT_EQ(as_fast(ratio_of(100, 200, 0.02, seed)).status, Status::fail) << seed;
    EXPECT_EQ(as_fast(ratio_of(200, 100, 0.02, seed)).status, Status::pass) << seed;
    undecided += faster(ratio_of(100, 100, 0.02, seed)).status == Status::inconclusive;
  }
  EXPECT_GE(undecided, kSeeds - 1);
}

TEST(SpeedClaims, EqualIsAsFastAndATenthSlowerIsNot) {
  size_t held = 0, refused = 0, lost = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Status same = as_fast(ratio_of(100, 100, 0.02, seed)).status,
                 slower = as_fast(ratio_of(100, 110, 0.02, seed)).status;
    held += same == Status::pass;
    lost += same == Status::fail;
    refused += slower == Status::fail;
    EXPECT_NE(slower, Status::pass) << seed;
  }
  EXPECT_GE(held, kSeeds * 95 / 100);
  EXPECT_GE(refused, kSeeds * 95 / 100);
  EXPECT_EQ(lost, 0u);
}

// A tenth faster or slower, of samples that differ by a factor of seven: hardly anything is decided, and what
// is wrong stays within what 95 % allow.
TEST(SpeedClaims, NoiseDecidesNothing) {
  size_t undecided = 0, wrong = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Status quicker = faster(ratio_of(110, 100, 1, seed)).status,
                 slower = faster(ratio_of(100, 110, 1, seed)).status,
                 loaded = as_fast(ratio_of(100, 110, 1, seed)).status;
    for (const Status status : {quicker, slower, loaded}) undecided += status == Status::inconclusive;
    wrong += quicker == Status::fail;
    wrong += slower == Status::pass;
    wrong += loaded == Status::pass;
  }
  EXPECT_GE(undecided, 3 * kSeeds * 8 / 10);
  EXPECT_LE(wrong, 3 * kSeeds * 5 / 100);
}

TEST(SpeedClaims, TooFewRoundsDecideNothing) {
  for (const size_t rounds : {0u, 1u, 8u}) {
    const SpeedClaim claim = faster(ratio_of(200, 100, 0.02, 1, rounds));
    EXPECT_EQ(claim.status, Status::inconclusive) << rounds;
    EXPECT_FALSE(claim.low || claim.high);
    EXPECT_THAT(claim_text(claim), HasSubstr("not shown to be faster than dense"));
    EXPECT_EQ(to_json(speed_claim_from_json(to_json(claim))), to_json(claim));
  }
}

struct Said {
  const char* name;
  SpeedClaim claim;
  Status status;
  const char* text;
};

class SpeedClaimText : public testing::TestWithParam<Said> {};

TEST_P(SpeedClaimText, NamesWhatIsCompared) {
  const Said& said = GetParam();
  EXPECT_EQ(said.claim.status, said.status);
  EXPECT_EQ(claim_text(said.claim), said.text);
  const nlohmann::ordered_json json = to_json(said.claim);
  EXPECT_EQ(json["text"], said.text);
  EXPECT_EQ(to_json(speed_claim_from_json(nlohmann::ordered_json::parse(json.dump()))), json);
}

INSTANTIATE_TEST_SUITE_P(
    SpeedClaims, SpeedClaimText,
    testing::Values(
        Said{"faster", faster({2.1, 1.9, 2.3, 60}), Status::pass,
             "int4_tinygemm_g128 m=1 n=4096 k=4096: 2.10x [1.90, 2.30] faster than dense bfloat16 "
             "(aten_aten)"},
        Said{"slower", faster({0.5, 0.45, 0.55, 60}), Status::fail,
             "int4_tinygemm_g128 m=1 n=4096 k=4096: slower than dense bfloat16 (aten_aten), 0.50x [0.45, "
             "0.55]"},
        Said{"equal", faster({1.005, 0.995, 1.015, 60}), Status::inconclusive,
             "int4_tinygemm_g128 m=1 n=4096 k=4096: not shown to be faster than dense bfloat16 (aten_aten), "
             "1.00x [0.99, 1.01]"},
        Said{"faster_in_doubt", faster({2.1, 1.9, 2.3, 60}, true), Status::inconclusive,
             "int4_tinygemm_g128 m=1 n=4096 k=4096: not shown to be faster than dense bfloat16 (aten_aten), "
             "2.10x [1.90, 2.30], in doubt"},
        Said{"slower_in_doubt", faster({0.5, 0.45, 0.55, 60}, true), Status::inconclusive,
             "int4_tinygemm_g128 m=1 n=4096 k=4096: not shown to be faster than dense bfloat16 (aten_aten), "
             "0.50x [0.45, 0.55], in doubt"},
        Said{"as_fast", as_fast({0.99, 0.97, 1.01, 60}), Status::pass,
             "block after loading: as fast as before saving, 0.99x [0.97, 1.01]"},
        Said{"slower_after_loading", as_fast({0.8, 0.78, 0.82, 60}), Status::fail,
             "block after loading: slower than before saving, 0.80x [0.78, 0.82]"},
        Said{"perhaps_as_fast", as_fast({0.96, 0.93, 0.98, 60}), Status::inconclusive,
             "block after loading: not shown to be as fast as before saving, 0.96x [0.93, 0.98]"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SpeedClaims, AMarginLiesBetweenFasterAndSlower) {
  EXPECT_EQ(faster({1.02, 1.011, 1.03, 60}).status, Status::pass);
  EXPECT_EQ(faster({1.02, 1.009, 1.03, 60}).status, Status::inconclusive);
  EXPECT_EQ(faster({0.98, 0.97, 0.989, 60}).status, Status::fail);
  EXPECT_EQ(faster({0.98, 0.97, 0.991, 60}).status, Status::inconclusive);
}

TEST(SpeedClaims, TheGateTakesTheWorst) {
  SpeedClaim held = faster({2, 1.9, 2.1, 60}), lost = faster({0.5, 0.4, 0.6, 60}),
             open = faster({1, 0.9, 1.1, 60}), optional = lost;
  optional.required = false;
  using Claims = std::vector<SpeedClaim>;
  EXPECT_EQ(gated_status({}, Decision::met, false), Status::pass);
  EXPECT_EQ(gated_status(Claims{held, optional}, Decision::met, false), Status::pass);
  EXPECT_EQ(gated_status(Claims{held, open}, Decision::met, false), Status::inconclusive);
  EXPECT_EQ(gated_status(Claims{open, lost}, Decision::met, false), Status::fail);
  EXPECT_EQ(gated_status(Claims{held}, Decision::missed, false), Status::fail);
  EXPECT_EQ(gated_status(Claims{held}, Decision::undecided, false), Status::inconclusive);
  EXPECT_EQ(gated_status(Claims{lost}, Decision::undecided, false), Status::fail);
  EXPECT_EQ(gated_status(Claims{lost}, Decision::missed, true), Status::inconclusive);
  EXPECT_THAT(claims_text(Claims{held, optional}), HasSubstr("(not required)"));
  EXPECT_THAT(claims_text(Claims{held, lost}), Not(HasSubstr("(not required)")));
}

}  // namespace
}  // namespace qcts
