// SPDX-License-Identifier: BSD-3-Clause
// Tests the mutants: the list keeps its size, the judge's own parts answer every question of the exam and
// each faulty part fails one, the default plan kills every faulty kernel, and a failure is explained by the
// planted fault, never by another.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures/golden.h"
#include "reports/report.h"
#include "suites/base/paths.h"
#include "suites/cases/case.h"
#include "suites/cases/expand.h"
#include "suites/selftest/alarms.h"
#include "suites/selftest/exam.h"
#include "suites/selftest/explain.h"
#include "suites/selftest/kill.h"

namespace qcts::selftest {
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

constexpr auto kKindName = [](const testing::TestParamInfo<MutantKind>& info) {
  return std::string(mutant_kind_name(info.param));
};

class ExamOf : public testing::TestWithParam<MutantKind> {};

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

INSTANTIATE_TEST_SUITE_P(Exam, ExamOf, testing::ValuesIn(kExaminedKinds), kKindName);

struct Cover {
  const char* plan;
  MutantKind kind;
  size_t mutants;
};

class CoverOf : public testing::TestWithParam<Cover> {};

// Fails if the plan's cases do not kill a new mutant.
TEST_P(CoverOf, KillsEveryMutantOfItsKind) {
  KillRequest request;
  request.plan = GetParam().plan;
  const std::vector<KillRow> rows = kill(request, [](const KillRow&) {});
  EXPECT_GE(rows.size(), GetParam().mutants);
  for (const KillRow& row : rows) EXPECT_EQ(row.mutant->kind, GetParam().kind);
  for (const KillRow* row : survivors(rows))
    ADD_FAILURE() << row->mutant->id << " lives: " << row->mutant->what << " " << row->problem
                  << "; for the cover of plan " << request.plan
                  << ": qcts selftest kill --all --cover --mutant " << row->mutant->id;
  for (const KillRow& row : rows)
    if (row.killed() && row.mutant->kind == MutantKind::cuda) {
      EXPECT_THAT(row.killers[0].reason + row.killers[0].where,
                  testing::ContainsRegex(" thread [0-9]+|row [0-9]+"))
          << row.mutant->id;
    }
}

INSTANTIATE_TEST_SUITE_P(Mutants, CoverOf,
                         testing::Values(Cover{"quick", MutantKind::kernel, 358},
                                         Cover{"quick_cuda", MutantKind::cuda, 33},
                                         Cover{"quick_files", MutantKind::format, 37}),
                         [](const auto& info) { return std::string(mutant_kind_name(info.param.kind)); });

// Every change by a fault shows in the bytes. The claim to keep the bytes lets the judge compare them.
// Without the claim, every round trip that a fault changes must fail as well, by the path of the change.
class ValueFault : public testing::TestWithParam<const char*> {};

std::set<std::string> cases_of(const std::vector<Killer>& killers) {
  std::set<std::string> ids;
  for (const Killer& killer : killers) ids.insert(killer.case_id);
  return ids;
}

TEST_P(ValueFault, FailsEveryRoundTripThatHoldsWhatItChanges) {
  KillRequest request;
  request.plan = "quick_files";
  request.every_case = true;
  request.mutants = {GetParam()};
  request.cases = {"round_trip.*"};
  const std::vector<KillRow> rows = kill(request, [](const KillRow&) {});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_FALSE(rows[0].without_claim.empty());
  EXPECT_EQ(cases_of(rows[0].without_claim), cases_of(rows[0].killers));
  for (const Killer& killer : rows[0].without_claim)
    EXPECT_FALSE(killer.where.empty()) << killer.case_id << ": " << killer.reason;
}

INSTANTIATE_TEST_SUITE_P(Mutants, ValueFault,
                         testing::Values("f_numbers_plus_one", "f_flags_flipped", "f_gradients_flipped",
                                         "f_strings_lengthened", "f_lists_and_tuples_swapped",
                                         "f_own_metadata_lost", "f_own_metadata_changed", "f_storages_untied",
                                         "f_device_moved", "f_object_number_changed", "f_beside_file_lost",
                                         "f_beside_number_changed"),
                         [](const auto& info) { return std::string(info.param); });

class WithoutAFault : public testing::TestWithParam<MutantKind> {};

TEST_P(WithoutAFault, TheMutantsPass) {
  KillRequest request;
  request.plan = GetParam() == MutantKind::format ? "quick_files" : "quick";
  const KillRow row = kill_together(request, "", GetParam());
  EXPECT_FALSE(row.killed()) << row.killers[0].case_id << ": " << row.killers[0].reason;
  EXPECT_GT(row.judged, 100u);
}

INSTANTIATE_TEST_SUITE_P(Mutants, WithoutAFault, testing::Values(MutantKind::kernel, MutantKind::format),
                         kKindName);

struct Planned {
  Planned() {
    registry.add(builtin_provider());
    // The cover has cases that no builtin kernel serves.
    registry.load(build_path("lib/selftest/qcts_mutants.so"));
    fixtures = load_fixtures(fixtures_folder());
  }
  std::vector<Case> cases(const char* plan) const {
    return expand(load_plan(plan_path(plan)), {fixtures.goldens, fixtures.malformed, &registry});
  }
  Registry registry;
  Fixtures fixtures;
};

TEST(QuickPlan, CoverNamesCasesOfTheCompletePlan) {
  std::set<std::string> ids;
  const Planned planned;
  for (const Case& c : planned.cases(kCompletePlan)) ids.insert(c.id.text());
  for (const char* name : {"quick", "quick_files"}) {
    const Plan plan = load_plan(plan_path(name));
    ASSERT_TRUE(plan.cover);
    EXPECT_FALSE(plan.cover->empty());
    for (const std::string& id : *plan.cover) EXPECT_TRUE(ids.contains(id)) << id;
  }
}

TEST(QuickPlan, HasItsCoverAndAGoldenOfEachScheme) {
  const Planned planned;
  std::set<std::string> ids, schemes;
  for (const Case& c : planned.cases("quick")) {
    ids.insert(c.id.text());
    if (c.golden()) schemes.insert(c.id.scheme);
  }
  const Plan plan = load_plan(plan_path("quick"));
  for (const std::string& id : *plan.cover) EXPECT_TRUE(ids.contains(id)) << id;
  // Another library's golden that is only read as a scheme's weights does not count as that scheme's golden.
  const auto holds_scheme = [](const Case& c) {
    return !std::ranges::any_of(c.golden()->tensors, [&](const Golden::TensorInfo& tensor) {
      return tensor.kernel_scheme == c.id.scheme;
    });
  };
  for (const Case& c : planned.cases(kCompletePlan))
    if (c.golden() && holds_scheme(c)) {
      EXPECT_TRUE(schemes.contains(c.id.scheme)) << c.id.text();
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

class ExplanationOf : public testing::TestWithParam<Explanation> {};

TEST_P(ExplanationOf, NamesWhatWasPlanted) {
  const Explained explained = explain(GetParam());
  ASSERT_TRUE(explained.killed) << explained.reason;
  EXPECT_TRUE(explained.right()) << explained.reason;
}

INSTANTIATE_TEST_SUITE_P(Mutants, ExplanationOf, testing::ValuesIn(explanation_list()));

TEST(Explanations, KeepTheirNumber) {
  const auto is_pair = [](const Explanation& e) { return e.is_pair(); };
  const std::span<const Explanation> all = explanation_list();
  const auto pairs = std::ranges::count_if(all, is_pair);
  EXPECT_GE(pairs, 10);
  EXPECT_GE(std::ssize(all) - pairs, 20);
}

// A single fault must be named. For two faults, no hypothesis is allowed, but not that of another fault.
TEST(Explanations, AreHeldToTheirWords) {
  const Explanation one{"a", "", "nibbles swapped"}, two{"a+b", "", "nibbles swapped|zero point ignored"};
  EXPECT_TRUE((Explained{one, true, "nibbles swapped", ""}.right()));
  EXPECT_FALSE((Explained{one, true, "", ""}.right()));
  EXPECT_FALSE((Explained{one, true, "nibbles", ""}.right()));
  EXPECT_FALSE((Explained{one, false, "nibbles swapped", ""}.right()));
  EXPECT_TRUE((Explained{two, true, "", ""}.right()));
  EXPECT_TRUE((Explained{two, true, "zero point ignored", ""}.right()));
  EXPECT_FALSE((Explained{two, true, "scale of the previous group", ""}.right()));
}

}  // namespace
}  // namespace qcts::selftest
