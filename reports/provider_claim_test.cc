// SPDX-License-Identifier: BSD-3-Clause
// The worth of one provider's complete run: conformant with its limits, partial, or nothing.
#include "reports/provider_claim.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/report.h"

namespace qcts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Problem {
  std::string family, dtype;
  int64_t m, n, k;
};

// Every family in each type, with odd and even sizes.
std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const char* family : {"noise", "rows", "large"})
    for (const char* dtype : {"bfloat16", "float16", "float32"})
      for (const int64_t m : {1, 5, 33})
        for (const int64_t k : {40, 96, 216, 256}) all.push_back({family, dtype, m, 37, k});
  return all;
}

Verdict asked(const Problem& problem, Status status, const std::string& scheme = "int8_row") {
  Verdict verdict;
  verdict.case_id = {Kind::numerics, Op::linear, scheme,
                     problem.family + "_m" + std::to_string(problem.m) + "_k" + std::to_string(problem.k) +
                         "_" + problem.dtype};
  verdict.provider = "acme";
  verdict.variant = "scalar";
  verdict.status = status;
  verdict.reason = status == Status::pass ? "" : "too odd";
  verdict.input_kind = "reachable";
  verdict.asked = Asked{.family = problem.family,
                        .w_dtype = problem.dtype,
                        .x_dtype = problem.dtype,
                        .y_dtype = problem.dtype,
                        .policy = "weight_only",
                        .layout = "plain",
                        .m = problem.m,
                        .n = problem.n,
                        .k = problem.k};
  return verdict;
}

// A complete run of a provider that declines these problems.
RunReport run_of(const std::function<bool(const Problem&)>& declines) {
  RunReport report;
  report.plan = "nightly";
  report.selection = {"--provider ./acme.so"};
  report.providers = {{{"name", "acme"}, {"version", "1"}, {"isolation", "isolated"}}};
  for (const Problem& problem : problems())
    report.verdicts.push_back(asked(problem, declines(problem) ? Status::not_supported : Status::pass));
  for (const Verdict& verdict : report.verdicts) report.mustpass.push_back(verdict.case_id.text());
  report.mustpass.push_back("numerics.linear/nf4_b64/noise");
  std::ranges::sort(report.mustpass);
  return report;
}

bool none(const Problem&) { return false; }

TEST(ProviderClaim, ARunThatDeclinesNothingIsConformant) {
  const Conformance result = conformance(run_of(none));
  EXPECT_EQ(result.outcome, Outcome::conformant);
  EXPECT_TRUE(result.conformant);
  EXPECT_EQ(result.reason, "acme 1, linear of int8_row, weight_only, bf16 f16 f32 (108 of 108)");
}

struct LimitCase {
  const char* name;
  std::function<bool(const Problem&)> declines;
  std::string rules;
};
void PrintTo(const LimitCase& one, std::ostream* out) { *out << one.name; }
class OneLimit : public testing::TestWithParam<LimitCase> {};

TEST_P(OneLimit, IsConformantAndSaid) {
  const Conformance result = conformance(run_of(GetParam().declines));
  EXPECT_TRUE(result.conformant) << result.reason;
  EXPECT_THAT(result.reason, HasSubstr("; declined: " + GetParam().rules + ")"));
}

INSTANTIATE_TEST_SUITE_P(
    ProviderClaim, OneLimit,
    testing::Values(LimitCase{"type", [](const Problem& p) { return p.dtype == "float16"; }, "x float16, 36"},
                    LimitCase{"above", [](const Problem& p) { return p.m > 16; }, "m above 5, 36"},
                    LimitCase{"below", [](const Problem& p) { return p.k < 64; }, "k below 96, 27"},
                    LimitCase{"multiple", [](const Problem& p) { return p.k % 3 != 0; },
                              "k not a multiple of 3, 54"},
                    LimitCase{"two", [](const Problem& p) { return p.dtype == "float16" || p.k == 40; },
                              "x float16, 36; k below 96, 18"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ProviderClaim, AMultipleIsFoundWhereSizesLieBetween) {
  std::vector<Asked> sizes;
  for (const int64_t k : {32, 40, 64, 72, 96, 104, 128}) sizes.push_back({.family = "noise", .k = k});
  std::vector<AskedCase> cases;
  for (const Asked& one : sizes) cases.push_back({&one, one.k % 32 != 0});
  const DeclineLimits limits = limits_of(cases);
  ASSERT_EQ(limits.rules.size(), 1u);
  EXPECT_EQ(limits.rules[0].text(), "k not a multiple of 16") << "the least that explains them";
  EXPECT_EQ(limits.rules[0].cases, 3u);
  EXPECT_THAT(limits.irregular, IsEmpty());
}

TEST(ProviderClaim, TypesThatDifferAreOneLimit) {
  const Asked wide{.family = "wide_y", .w_dtype = "bfloat16", .x_dtype = "bfloat16", .y_dtype = "float32"};
  const Asked other{.family = "wide_x", .w_dtype = "float16", .x_dtype = "float32", .y_dtype = "float32"};
  const Asked f16{.family = "noise", .w_dtype = "float16", .x_dtype = "float16", .y_dtype = "float16"};
  const Asked f32{.family = "noise", .w_dtype = "float32", .x_dtype = "float32", .y_dtype = "float32"};
  const Asked bf16{.family = "noise", .w_dtype = "bfloat16", .x_dtype = "bfloat16", .y_dtype = "bfloat16"};
  const AskedCase cases[] = {{&wide, true}, {&other, true}, {&f16, false}, {&f32, false}, {&bf16, false}};
  const DeclineLimits limits = limits_of(cases);
  ASSERT_EQ(limits.rules.size(), 1u);
  EXPECT_EQ(limits.rules[0].text(), "mixed types");
}

TEST(ProviderClaim, ADeclineThatNoRuleExplainsBarsTheWord) {
  const Conformance result = conformance(run_of(
      [](const Problem& p) { return p.m == 5 && p.k == 96 && p.dtype == "float32" && p.family == "rows"; }));
  EXPECT_EQ(result.outcome, Outcome::nothing_proved);
  EXPECT_FALSE(result.conformant);
  EXPECT_TRUE(result.is_partial);
  EXPECT_THAT(result.reason, StartsWith("1 of 1 declined cases follow no rule, first "
                                        "numerics.linear/int8_row/rows_m5_k96_float32; acme 1"));
}

TEST(ProviderClaim, MoreThanFiveRulesAreNoLimits) {
  std::vector<Asked> kinds;
  for (const char* layout : {"a", "b", "c", "d", "e", "f", "plain"})
    kinds.push_back({.family = "noise", .layout = layout, .n = 8, .k = 8});
  std::vector<AskedCase> cases;
  for (const Asked& one : kinds) cases.push_back({&one, one.layout != "plain"});
  const DeclineLimits limits = limits_of(cases);
  EXPECT_EQ(limits.rules.size(), kMaxLimits);
  EXPECT_EQ(limits.irregular.size(), 1u);
}

TEST(ProviderClaim, FewerThanHalfIsPartialWithBothCounts) {
  const Conformance result =
      conformance(run_of([](const Problem& p) { return p.dtype != "bfloat16" || p.m > 5; }));
  EXPECT_EQ(result.outcome, Outcome::nothing_proved);
  EXPECT_TRUE(result.is_partial);
  EXPECT_THAT(result.reason,
              StartsWith("linear of int8_row: 24 of 108 mustpass cases pass, fewer than half; acme"));
}

TEST(ProviderClaim, AFamilyWithoutAPassIsPartialUnlessALimitOfTypesExcludesIt) {
  const auto large_is_declined = [](const Problem& p) { return p.family == "large"; };
  RunReport report = run_of(large_is_declined);
  for (Verdict& verdict : report.verdicts)
    if (verdict.asked->family == "large") verdict.asked->n = 4096;
  const Conformance by_size = conformance(report);
  EXPECT_TRUE(by_size.is_partial);
  EXPECT_THAT(by_size.reason, HasSubstr("72 of 108 mustpass cases pass, none of large"));
  for (Verdict& verdict : report.verdicts)
    if (verdict.asked->family == "large") verdict.asked->x_dtype = "float64";
  EXPECT_TRUE(conformance(report).conformant) << "half_overflow exists only in float16";
}

TEST(ProviderClaim, ADeclinedSchemeIsNoPartOfIt) {
  RunReport report = run_of(none);
  for (const Problem& problem : problems())
    report.verdicts.push_back(asked(problem, Status::not_supported, "int8_tensor"));
  for (const Verdict& verdict : report.verdicts) report.mustpass.push_back(verdict.case_id.text());
  std::ranges::sort(report.mustpass);
  const Conformance result = conformance(report);
  EXPECT_TRUE(result.conformant) << result.reason;
  EXPECT_THAT(result.reason, HasSubstr("(108 of 108; not served: linear of int8_tensor)"));
}

TEST(ProviderClaim, OneVariantThatServesIsEnough) {
  RunReport report = run_of(none);
  for (const Problem& problem : problems()) {
    report.verdicts.push_back(asked(problem, Status::not_supported));
    report.verdicts.back().variant = "avx512";
  }
  EXPECT_THAT(conformance(report).reason, HasSubstr("(108 of 108)"));
  for (Verdict& verdict : report.verdicts)
    if (verdict.variant == "avx512") verdict.asked.reset();  // this machine cannot run it
  EXPECT_THAT(conformance(report).reason, HasSubstr("(108 of 108)"));
}

TEST(ProviderClaim, NeedsTheCompletePlan) {
  RunReport report = run_of(none);
  for (const char* word :
       {"--plan quick", "--filter x", "--kind numerics", "--scheme int8_row", "--variant avx2"}) {
    report.selection = {"--provider ./acme.so", word};
    EXPECT_THAT(conformance(report).claims, IsEmpty()) << word;
    EXPECT_FALSE(conformance(report).conformant) << word;
  }
  report.selection = {"--provider ./acme.so"};
  report.shard = "1/2";
  EXPECT_THAT(conformance(report).claims, IsEmpty());
}

TEST(ProviderClaim, IsNoneOfAPeerOrOfQctsItself) {
  RunReport report = run_of(none);
  report.providers[0]["peer"] = true;
  EXPECT_THAT(provider_claims(report), IsEmpty());
  report = run_of(none);
  report.providers[0]["name"] = "builtin";
  for (Verdict& verdict : report.verdicts) verdict.provider = "builtin";
  EXPECT_THAT(provider_claims(report), IsEmpty());
}

TEST(ProviderClaim, AFailureIsNeitherConformantNorPartial) {
  RunReport report = run_of(none);
  report.verdicts[3].status = Status::fail;
  const Conformance result = conformance(report);
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_FALSE(result.is_partial);
  ASSERT_EQ(result.claims.size(), 1u);
  EXPECT_FALSE(result.claims[0].is_conformant());
  EXPECT_THAT(result.claims[0].lack(), HasSubstr("1 of 108 mustpass cases neither pass nor are declined"));
}

TEST(ProviderClaim, IsNotStatedOfAProviderThatWasNotIsolated) {
  RunReport report = run_of(none);
  report.providers[0]["isolation"] = "not isolated: it can trace the judge";
  EXPECT_EQ(conformance(report).outcome, Outcome::infrastructure);
  report.providers[0]["isolation"] = "not isolated, as was asked: it can trace the judge";
  EXPECT_FALSE(conformance(report).conformant);
}

TEST(ProviderClaim, WhoeverDeclinedEverythingProvedNothing) {
  RunReport report = run_of([](const Problem&) { return true; });
  const Conformance alone = conformance(report);
  EXPECT_EQ(alone.outcome, Outcome::nothing_proved);
  EXPECT_EQ(alone.reason, "acme declined all 108 cases: too odd");
  report.selection = {"--plan quick", "--provider ./acme.so", "--provider builtin"};
  report.verdicts.push_back(asked(problems()[0], Status::pass));
  report.verdicts.back().provider = "builtin";
  EXPECT_EQ(conformance(report).outcome, Outcome::nothing_proved) << "although builtin passed";
}

TEST(ProviderClaim, IsInTheRecord) {
  const Verdict before = asked(problems()[0], Status::pass);
  const Verdict after = verdict_from_json(to_json(before));
  EXPECT_EQ(after.asked, before.asked);
  nlohmann::ordered_json spoilt = to_json(before);
  spoilt["asked"]["m"] = "1";
  EXPECT_THROW(verdict_from_json(spoilt), std::runtime_error);
}

TEST(ProviderClaim, TheWordNarrowedIsOfTheUsersChoice) {
  RunReport report = run_of(none);
  report.selection = {"--plan quick", "--provider ./acme.so", "--peer aten"};
  EXPECT_FALSE(is_narrowed(report));
  report.selection.push_back("--filter x");
  EXPECT_TRUE(is_narrowed(report));
}

}  // namespace
}  // namespace qcts
