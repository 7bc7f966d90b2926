// SPDX-License-Identifier: BSD-3-Clause
// Tests the reasons of failed verdicts on kernels with planted faults: the first wrong element, the
// overwritten memory, the broken claim. selftest_test.cc tests that every mutant is killed and that
// hypotheses name faults.
#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/cases/expand.h"
#include "suites/judge/judge.h"
#include "suites/selftest/kill.h"

namespace qcts::selftest {
namespace {

using testing::HasSubstr;

struct Reason {
  const char *mutant, *case_id, *words;
};
class ReasonOf : public testing::TestWithParam<Reason> {};

TEST_P(ReasonOf, SaysWhatIsWrong) {
  const auto& [mutant, case_id, words] = GetParam();
  KillRequest request;
  request.cases = {case_id};
  const KillRow row = kill_together(request, mutant);
  ASSERT_TRUE(row.killed()) << mutant << " lives " << row.problem;
  EXPECT_EQ(row.killers[0].status, "fail");
  EXPECT_THAT(row.killers[0].reason, HasSubstr(words));
}

// clang-format off
INSTANTIATE_TEST_SUITE_P(Mutants, ReasonOf, testing::Values(
    Reason{"d4_nibbles_swapped", "numerics.dequantize/int4_tinygemm_g32/all_codes_n40_k96_bf16", "y: row 0, column 2 (group 0): want "},
    Reason{"d8_scale_as_bf16", "numerics.dequantize/int8_row/all_codes_n7_k13_bf16", "y: row 1, column 4: want 0x"},
    Reason{"d8_tail_unwritten", "numerics.dequantize/int8_row/all_codes_n7_k13_bf16", "y: row 0, column 8: want 0x"},
    Reason{"l8_scale_as_bf16", "numerics.linear/int8_row/noise_m5_n37_k216_f32", "y: row 0, column 0: want "},
    Reason{"l_m_tail_unwritten", "numerics.linear/int4_tinygemm_g32/noise_m5_n40_k96_bf16", "outputs poisoned with NaN"},
    Reason{"l_reads_past_row", "numerics.linear/int8_row/columns_m1_n10_k47_bf16", "y: row 0, column 0: want "},
    Reason{"l_reads_past_row", "numerics.linear/fp8_row/columns_m1_n10_k47_bf16", "(nan)"},
    Reason{"l_bias_dropped_in_batches", "numerics.linear/int4_tinygemm_g32/exact_sums_m5_n40_k96_bf16", "hypothesis: bias missing (predicts "},
    Reason{"l_writes_past_end", "numerics.linear/int8_row/noise_m5_n37_k216_bf16", "y: 2 bytes written after the end, the first at +0"},
    Reason{"l_scribbles_on_x", "numerics.linear/int8_row/noise_m5_n37_k216_bf16", "wrote into its input x"},
    Reason{"l_flush_left_set", "numerics.linear/int8_row/noise_m5_n37_k216_bf16", "MXCSR 0x1f80 -> 0x9fc0"},
    Reason{"l_calls_rotate_k", "determinism.linear/int4_tinygemm_g32/noise_m17_n37_k96_bf16", "claims to be deterministic, but repeat "},
    Reason{"l_threads_split_k", "determinism.linear/int4_tinygemm_g32/noise_m17_n37_k96_bf16", "claims to be thread-invariant, but "},
    Reason{"l_batch_reverses_k", "determinism.linear/int4_tinygemm_g32/noise_m17_n37_k96_bf16", "claims to be batch-invariant, but row "}),
    [](const auto& info) { return std::to_string(info.index) + "_" + info.param.mutant; });
// clang-format on

// Faults that are not in the catalogue, in wrappers around its correct kernels.
class WrappedKernel : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    registry = new Registry;
    registry->load(build_path("lib/selftest/qcts_mutants.so"));
    cases = new std::vector<Case>(expand(load_plan(plan_path(kCompletePlan)), {{}, {}, registry}));
  }
  static void TearDownTestSuite() {
    delete cases;
    delete registry;
  }

  // Returns the verdict of the case on the kernel that serves it, with run() replaced.
  static Verdict judged(std::string_view case_id, qcts_status (*run)(const qcts_problem*),
                        bool claims = true) {
    Case c = *std::ranges::find(*cases, parse_case_id(case_id).value(), &Case::id);
    right = c.implementation->kernel;
    qcts_kernel kernel = *right;
    kernel.run = run;
    if (!claims) kernel.claims = 0;
    const Implementation implementation{"wrapped", &kernel};
    c.implementation = &implementation;
    return judge(c, {});
  }

  static Registry* registry;
  static std::vector<Case>* cases;
  static const qcts_kernel* right;
};
Registry* WrappedKernel::registry;
std::vector<Case>* WrappedKernel::cases;
const qcts_kernel* WrappedKernel::right;

constexpr const char *kLinear = "numerics.linear/int4_tinygemm_g32/noise_m5_n40_k96_bf16",
                     *kDeterminism = "determinism.linear/int4_tinygemm_g32/noise_m17_n37_k96_bf16";

TEST_F(WrappedKernel, WithoutAFaultPasses) {
  for (const char* id : {kLinear, kDeterminism}) {
    const Verdict verdict = judged(id, [](const qcts_problem* p) { return right->run(p); });
    EXPECT_EQ(verdict.status, Status::pass) << verdict.reason;
  }
}

// The catalogue has the previous group: l4_group_late.
TEST_F(WrappedKernel, ThatTakesTheNextGroupIsNamed) {
  const Verdict verdict = judged(kLinear, [](const qcts_problem* p) {
    std::vector<qcts_plane> planes(p->planes, p->planes + p->n_planes);
    qcts_plane& scales = *std::ranges::find(planes, std::string_view("scale_and_zero"), &qcts_plane::name);
    const size_t group_bytes = static_cast<size_t>(p->n) * 2 * 2,
                 groups = static_cast<size_t>(p->k / p->group);
    std::vector<std::byte> moved(groups * group_bytes);
    const auto* from = static_cast<const std::byte*>(scales.data);
    std::memcpy(moved.data(), from, moved.size());
    std::memcpy(moved.data(), from + group_bytes, moved.size() - group_bytes);
    scales.data = moved.data();
    qcts_problem changed = *p;
    changed.planes = planes.data();
    return right->run(&changed);
  });
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_THAT(verdict.reason, HasSubstr("hypothesis: scale of the next group"));
}

TEST_F(WrappedKernel, ThatWritesBeforeItsOutputIsSeen) {
  const Verdict verdict =
      judged("numerics.dequantize/fp8_row/noise_n37_k216_bf16", [](const qcts_problem* p) {
        static_cast<std::byte*>(p->y)[-1] ^= std::byte{0x55};
        return right->run(p);
      });
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_THAT(verdict.reason, HasSubstr("y: 1 byte written before the start, the nearest at -1"));
}

TEST_F(WrappedKernel, ThatFailsWhereItSupportsIsAFailure) {
  const Verdict verdict = judged(kLinear, [](const qcts_problem*) { return qcts_status{QCTS_FAILED}; });
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_THAT(verdict.reason, HasSubstr("on a problem that supports() accepts"));
}

// Properties that a kernel does not claim are measured; they cannot fail.
TEST_F(WrappedKernel, ThatClaimsNothingIsMeasured) {
  const auto differs_with_threads = [](const qcts_problem* p) {
    const qcts_status status = right->run(p);
    if (p->threads > 1) *static_cast<std::byte*>(p->y) ^= std::byte{1};
    return status;
  };
  EXPECT_EQ(judged(kDeterminism, differs_with_threads).status, Status::fail);
  const Verdict verdict = judged(kDeterminism, differs_with_threads, false);
  EXPECT_EQ(verdict.status, Status::pass) << verdict.reason;
  const auto measure = std::ranges::find(verdict.measures, "same_for_threads", &Measure::name);
  ASSERT_NE(measure, verdict.measures.end());
  EXPECT_EQ(measure->value, 0);
}

}  // namespace
}  // namespace qcts::selftest
