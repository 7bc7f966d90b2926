// The mutants: the list keeps its size, the judge's own parts answer every question of the exam and each
// faulty part fails one, the default plan kills every faulty kernel, and a failed answer is explained by the
// fault that was planted, never by another.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures/golden.h"
#include "reports/report.h"
#include "suites/case.h"
#include "suites/paths.h"
#include "suites/self/alarms.h"
#include "suites/self/exam.h"
#include "suites/self/kill.h"

namespace qcts::self {
namespace {

TEST(Mutants, KeepTheirNumberAndTheirWords) {
  std::set<std::string_view> ids;
  size_t held = 0;
  for (const MutantInfo& mutant : mutant_list()) {
    EXPECT_TRUE(ids.insert(mutant.id).second) << mutant.id << " twice";
    EXPECT_FALSE(mutant.what.empty()) << mutant.id;
    held += mutant.held;
  }
  EXPECT_GE(ids.size(), 60u);
  EXPECT_GE(held, 15u);
}

class ExamOf : public testing::TestWithParam<const char*> {};

TEST_P(ExamOf, IsPassedByTheRealParts) {
  const std::vector<ExamResult> results = examine(GetParam());
  ASSERT_FALSE(results.empty());
  for (const ExamResult& result : results) EXPECT_TRUE(result.held) << result.question << ": " << result.what;
}

TEST_P(ExamOf, IsFailedByEveryFaultyPart) {
  size_t mutants = 0;
  for (const MutantInfo& mutant : mutant_list()) {
    if (mutant.kind != GetParam()) continue;
    ++mutants;
    EXPECT_TRUE(
        std::ranges::any_of(examine(GetParam(), mutant.id), [](const ExamResult& r) { return !r.held; }))
        << mutant.id << " lives: " << mutant.what;
  }
  EXPECT_GT(mutants, 0u);
}

INSTANTIATE_TEST_SUITE_P(Exam, ExamOf, testing::Values("comparator", "runner", "merge", "bench"));

// Keeps suites/plans/quick.json current: a new mutant that its cases do not kill fails here.
TEST(Mutants, DieUnderTheQuickPlan) {
  KillRequest request;
  request.plan = "quick";
  const std::vector<KillRow> rows = kill(request, [](const KillRow&) {});
  EXPECT_GE(rows.size(), 339u);
  for (const KillRow* row : survivors(rows))
    ADD_FAILURE() << row->mutant->id << " lives: " << row->mutant->what << " " << row->problem
                  << "; for the cover of the quick plan: qcts selftest kill --all --cover --mutant "
                  << row->mutant->id;
}

class WithoutAFault : public testing::TestWithParam<const char*> {};

TEST_P(WithoutAFault, TheMutantsPass) {
  KillRequest request;
  request.plan = "quick";
  const KillRow row = kill_together(request, "", GetParam());
  EXPECT_FALSE(row.killed()) << row.killers[0].case_id << ": " << row.killers[0].reason;
  EXPECT_GT(row.judged, 100u);
}

INSTANTIATE_TEST_SUITE_P(Mutants, WithoutAFault, testing::Values("kernel", "format"));

struct Planned {
  Planned() {
    registry.add(builtin_provider());
    fixtures = load_fixtures(fixtures_folder());
  }
  std::vector<Case> cases(const char* plan) const {
    return expand(load_plan(plan_path(plan)), {fixtures.goldens, fixtures.malformed, &registry});
  }
  Registry registry;
  Fixtures fixtures;
};

TEST(QuickPlan, CoverNamesCasesOfTheDefaultPlan) {
  std::set<std::string> ids;
  const Planned planned;
  for (const Case& c : planned.cases("default")) ids.insert(c.id);
  const Plan plan = load_plan(plan_path("quick"));
  ASSERT_TRUE(plan.cover);
  EXPECT_FALSE(plan.cover->empty());
  for (const std::string& id : *plan.cover) EXPECT_TRUE(ids.contains(id)) << id;
}

TEST(QuickPlan, HasItsCoverAndAGoldenOfEachScheme) {
  const Planned planned;
  std::set<std::string> ids, schemes;
  for (const Case& c : planned.cases("quick")) {
    ids.insert(c.id);
    if (c.golden) schemes.insert(split_case_id(c.id).scheme);
  }
  const Plan plan = load_plan(plan_path("quick"));
  for (const std::string& id : *plan.cover) EXPECT_TRUE(ids.contains(id)) << id;
  for (const Case& c : planned.cases("default"))
    if (c.golden) {
      EXPECT_TRUE(schemes.contains(split_case_id(c.id).scheme)) << c.id;
    }
}

// The first of the 200 seeds that `qcts selftest alarms` tries.
TEST(Alarms, NoneOverTheFirstSeed) {
  AlarmRequest request;
  request.seeds = 1;
  const std::vector<AlarmRow> rows = alarms(request, [](uint64_t) {});
  EXPECT_GE(rows.size(), 2u);
  for (const AlarmRow& row : rows) {
    EXPECT_GT(row.passed, 0u) << row.implementation;
    for (const Verdict& verdict : row.alarms) ADD_FAILURE() << verdict.full_id() << ": " << verdict.reason;
  }
}

struct Explained {
  const char* faults;
  const char* case_glob;
  std::vector<const char*> allowed;  // hypotheses that name what was planted
  bool must = true;                  // one of them has to be named
};
void PrintTo(const Explained& explained, std::ostream* out) { *out << explained.faults; }

class Explanation : public testing::TestWithParam<Explained> {};

// The words behind "hypothesis: "; empty when none is named.
std::string named(const std::string& reason) {
  constexpr std::string_view kKey = "hypothesis: ";
  const size_t at = reason.find(kKey);
  if (at == reason.npos) return {};
  const size_t begin = at + kKey.size();
  return reason.substr(begin, reason.find(" (predicts", begin) - begin);
}

TEST_P(Explanation, NamesWhatWasPlanted) {
  KillRequest request;
  request.cases = {GetParam().case_glob};
  const KillRow row = kill_together(request, GetParam().faults);
  ASSERT_TRUE(row.killed()) << GetParam().faults << " lives " << row.problem;
  const std::string hypothesis = named(row.killers[0].reason);
  const bool right =
      std::ranges::any_of(GetParam().allowed, [&](const char* word) { return hypothesis == word; });
  const bool silent = hypothesis.empty() && !GetParam().must;
  EXPECT_TRUE(right || silent) << row.killers[0].reason;
}

constexpr const char* kInt4 = "numerics.linear/int4_tinygemm_g32/noise_m5_n40_k96_bf16";
constexpr const char* kInt4Single = "numerics.linear/int4_tinygemm_g32/noise_m1_n40_k96_bf16";
constexpr const char* kInt8 = "numerics.linear/int8_row/noise_m5_n37_k216_f32";
constexpr const char* kInt8Zeros = "numerics.linear/int8_row/zero_points_m5_n37_k216_bf16";
constexpr const char* kInt8Tiny = "numerics.linear/int8_row/tiny_scales_m5_n37_k216_f32";
constexpr const char* kFp8 = "numerics.linear/fp8_row/noise_m5_n37_k216_f32";
constexpr const char* kFp8OneHot = "numerics.linear/fp8_row/one_hot_m216_n37_k216_bf16";
constexpr const char* kFp8Nan = "numerics.linear/fp8_row/non_finite_m5_n37_k216_f32";
constexpr const char* kInt4Dense = "numerics.dequantize/int4_tinygemm_g32/noise_n40_k96_bf16";
constexpr const char* kInt8Dense = "numerics.dequantize/int8_row/noise_n37_k216_f32";
constexpr const char* kInt8DenseZeros = "numerics.dequantize/int8_row/zero_points_n37_k216_bf16";
constexpr const char* kFp8Dense = "numerics.dequantize/fp8_row/all_codes_n37_k216_bf16";

INSTANTIATE_TEST_SUITE_P(
    OneFault, Explanation,
    testing::Values(
        Explained{"l4_nibbles_swapped", kInt4, {"nibbles swapped"}},
        Explained{"l4_signed_nibble", kInt4, {"codes read as two's complement"}},
        Explained{"l4_group_late", kInt4, {"scale of the group before"}},
        Explained{"l4_group_of_tile", kInt4Single, {"group index counted by tiles of 64"}},
        Explained{"l4_zero_ignored", kInt4, {"zero point ignored"}},
        Explained{"l4_zero_of_first_group", kInt4, {"zero of the first group"}},
        Explained{"l4_codes_one_up", kInt4, {"zero point one lower"}},
        Explained{"l4_last_group_dropped", kInt4, {"the weight is dropped"}},
        Explained{"l4_scale_transposed", kInt4, {"scales read transposed"}},
        Explained{"l8_zero_point_ignored", kInt8Zeros, {"zero point ignored"}},
        Explained{"l8_zero_point_one_up", kInt8, {"zero point one higher"}},
        Explained{"l8_difference_wraps", kInt8Zeros, {"code minus zero point wraps in eight bits"}},
        Explained{"l8_scale_of_next_row", kInt8, {"scale of the next row"}},
        Explained{"l8_scale_by_column", kInt8, {"scale indexed by column"}},
        Explained{"l8_scale_as_bf16", kInt8, {"scale read as bfloat16"}},
        Explained{"l8_scale_as_f16", kInt8, {"scale read as float16"}},
        Explained{"l8_tiny_scale_flushed", kInt8Tiny, {"tiny scales read as zero"}},
        Explained{"lf8_nan_is_480", kFp8Nan, {"NaN codes read as 480"}},
        Explained{"lf8_subnormal_codes_zero", kFp8OneHot, {"subnormal codes read as zero"}},
        Explained{"lf8_fnuz_bias", kFp8, {"exponent bias one higher"}},
        Explained{"l_last_k_dropped", kInt8, {"the weight is dropped"}},
        Explained{"l_tail_k_dropped", kInt8, {"the weight is dropped"}},
        Explained{"l_sums_in_bf16", kInt8, {"weights or sums rounded to bfloat16"}},
        Explained{"l_weights_as_bf16", kInt8, {"weights or sums rounded to bfloat16"}},
        Explained{"d4_nibbles_swapped", kInt4Dense, {"nibbles swapped"}},
        Explained{"d4_signed_nibble", kInt4Dense, {"codes read as two's complement"}},
        Explained{"d4_group_late", kInt4Dense, {"scale of the group before"}},
        Explained{"d4_zero_ignored", kInt4Dense, {"zero point ignored"}},
        Explained{"d4_pair_swapped", kInt4Dense, {"scale and zero swapped"}},
        Explained{"d8_zero_point_ignored", kInt8DenseZeros, {"zero point ignored"}},
        Explained{"d8_difference_wraps", kInt8DenseZeros, {"code minus zero point wraps in eight bits"}},
        Explained{"d8_scale_as_bf16", kInt8Dense, {"scale read as bfloat16"}},
        Explained{"df8_subnormal_codes_zero", kFp8Dense, {"subnormal codes read as zero"}},
        Explained{"df8_nan_is_480", kFp8Dense, {"NaN codes read as 480"}}));

// Two at once: one of the two may be named, another fault must not.
INSTANTIATE_TEST_SUITE_P(TwoFaults, Explanation,
                         testing::Values(Explained{"l4_nibbles_swapped+l4_zero_ignored",
                                                   kInt4,
                                                   {"nibbles swapped", "zero point ignored"},
                                                   false},
                                         Explained{
                                             "l4_signed_nibble+l4_group_late",
                                             kInt4,
                                             {"codes read as two's complement", "scale of the group before"},
                                             false},
                                         Explained{"l4_zero_ignored+l4_last_group_dropped",
                                                   kInt4,
                                                   {"zero point ignored", "the weight is dropped"},
                                                   false},
                                         Explained{"l4_scale_transposed+l4_nibbles_swapped",
                                                   kInt4,
                                                   {"scales read transposed", "nibbles swapped"},
                                                   false},
                                         Explained{"l4_codes_one_up+l4_zero_of_first_group",
                                                   kInt4,
                                                   {"zero point one lower", "zero of the first group"},
                                                   false},
                                         Explained{"l8_scale_as_bf16+l_last_k_dropped",
                                                   kInt8,
                                                   {"scale read as bfloat16", "the weight is dropped"},
                                                   false},
                                         Explained{"l8_zero_point_ignored+l8_scale_of_next_row",
                                                   kInt8Zeros,
                                                   {"zero point ignored", "scale of the next row"},
                                                   false},
                                         Explained{"lf8_fnuz_bias+l_tail_k_dropped",
                                                   kFp8,
                                                   {"exponent bias one higher", "the weight is dropped"},
                                                   false},
                                         Explained{"d4_nibbles_swapped+d4_zero_ignored",
                                                   kInt4Dense,
                                                   {"nibbles swapped", "zero point ignored"},
                                                   false},
                                         Explained{"d8_zero_point_ignored+d8_scale_as_bf16",
                                                   kInt8DenseZeros,
                                                   {"zero point ignored", "scale read as bfloat16"},
                                                   false}));

}  // namespace
}  // namespace qcts::self
