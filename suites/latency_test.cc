// Latency verdicts: no time without a right answer, three values, and a gate that an unknown machine cannot
// pass by accident.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "kernels/machine.h"
#include "suites/contender.h"
#include "suites/judge.h"
#include "suites/paths.h"
#include "suites/targets.h"

namespace qcts {
namespace {

const qcts_kernel& scalar_linear() {
  const qcts_provider& provider = builtin_provider();
  for (uint32_t i = 0; i < provider.n_kernels; ++i) {
    const qcts_kernel& kernel = *provider.kernels[i];
    if (kernel.op == QCTS_OP_LINEAR && std::string(kernel.scheme) == "int8_row" &&
        std::string(kernel.variant) == "scalar")
      return kernel;
  }
  throw std::logic_error("no builtin scalar linear of int8_row");
}

class LatencyVerdict : public testing::Test {
 protected:
  LatencyVerdict() {
    context_.targets = scratch_.path();
    context_.latency_budget_s = 0.2;
    context_.program = "qcts";
  }

  Verdict judge_kernel(const qcts_kernel& kernel) {
    const Implementation implementation{"test", &kernel};
    Case c;
    c.id = "latency.linear/int8_row/m1_n64_k64";
    c.kind = Kind::latency;
    c.op = "linear";
    c.scheme = find_scheme("int8_row");
    c.synthetic = Synthetic{"noise", {DType::bfloat16, 64, 64}, 1, 1};
    c.layout = "plain";
    c.implementation = &implementation;
    return judge(c, context_);
  }

  void write_target(double share) {
    const std::string name = machine_class(machine());
    std::ofstream(scratch_.path() / (name + ".json"))
        << R"({"schema": 1, "machine_class": ")" << name
        << R"(", "targets": [{"op": "linear", "scheme": "int8_row", "variant": "scalar", "measure": "share_of_probe", "at_least": )"
        << share << R"(, "reason": "a test"}]})";
  }

  static const Measure* measure(const Verdict& verdict, std::string_view name) {
    const auto found = std::find_if(verdict.measures.begin(), verdict.measures.end(),
                                    [&](const Measure& m) { return m.name == name; });
    return found == verdict.measures.end() ? nullptr : &*found;
  }

  ScratchFolder scratch_;
  JudgeContext context_;
};

TEST_F(LatencyVerdict, MeasuresAndSaysThatNothingIsKnownOfTheMachine) {
  const Verdict verdict = judge_kernel(scalar_linear());
  EXPECT_EQ(verdict.status, Status::pass) << verdict.reason;
  EXPECT_NE(verdict.reason.find("no target for this machine class " + machine_class(machine())),
            std::string::npos)
      << verdict.reason;
  EXPECT_NE(verdict.reason.find("no dense baseline here"), std::string::npos) << verdict.reason;
  for (const char* name :
       {"median_us", "warm_median_us", "share_of_probe", "ratio_to_itself", "bandwidth", "working_set_bytes"})
    EXPECT_NE(measure(verdict, name), nullptr) << name;
  EXPECT_GT(verdict.samples_us.size(), 5u);
}

TEST_F(LatencyVerdict, AWrongKernelIsNotTimed) {
  qcts_kernel wrong = scalar_linear();
  wrong.run = [](const qcts_problem* problem) {
    const qcts_status status = scalar_linear().run(problem);
    static_cast<std::byte*>(problem->y)[1] ^= std::byte{0x40};
    return status;
  };
  const Verdict verdict = judge_kernel(wrong);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_NE(verdict.reason.find("not timed, because the answer is wrong"), std::string::npos)
      << verdict.reason;
  EXPECT_EQ(measure(verdict, "median_us"), nullptr);
  EXPECT_TRUE(verdict.samples_us.empty());
}

// Right when it is looked at, idle once it is timed.
TEST_F(LatencyVerdict, WorkThatIsSkippedLaterIsSeen) {
  qcts_kernel lazy = scalar_linear();
  lazy.run = [](const qcts_problem* problem) {
    static int calls = 0;
    if (calls++ == 0) return scalar_linear().run(problem);
    std::fill_n(static_cast<std::byte*>(problem->y), static_cast<size_t>(problem->ldy_bytes),
                std::byte{0x7f});
    return QCTS_OK;
  };
  const Verdict verdict = judge_kernel(lazy);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_NE(verdict.reason.find("wrong afterwards"), std::string::npos) << verdict.reason;
}

TEST_F(LatencyVerdict, TheGateHasThreeAnswers) {
  context_.gate_latency = true;
  EXPECT_EQ(judge_kernel(scalar_linear()).status, Status::inconclusive) << "no target is not a pass";
  write_target(1e9);
  const Verdict missed = judge_kernel(scalar_linear());
  // An alarmed A/A row suspends the verdict, whatever the target.
  EXPECT_TRUE(missed.status == Status::fail || missed.reason.find("not to be trusted") != std::string::npos)
      << missed.reason;
  EXPECT_NE(missed.reason.find("share_of_probe missed"), std::string::npos) << missed.reason;
  write_target(1e-9);
  const Verdict met = judge_kernel(scalar_linear());
  EXPECT_TRUE(met.status == Status::pass || met.reason.find("not to be trusted") != std::string::npos)
      << met.reason;
}

TEST_F(LatencyVerdict, AMissedTargetWithoutAGateIsReported) {
  write_target(1e9);
  const Verdict verdict = judge_kernel(scalar_linear());
  EXPECT_EQ(verdict.status, Status::pass);
  EXPECT_NE(verdict.reason.find("missed"), std::string::npos) << verdict.reason;
  EXPECT_NE(measure(verdict, "target_share_of_probe"), nullptr);
}

TEST_F(LatencyVerdict, ABrokenTargetFileIsNoAnswer) {
  std::ofstream(scratch_.path() / (machine_class(machine()) + ".json")) << R"({"schema": 1})";
  EXPECT_EQ(judge_kernel(scalar_linear()).status, Status::internal);
}

TEST(MachineClass, IsAFileName) {
  Machine machine;
  machine.cpu_model = "AMD EPYC 7B13 (64-Core)";
  machine.features = {"avx2"};
  EXPECT_EQ(machine_class(machine), "amd_epyc_7b13_64_core_avx2");
}

TEST(Contender, ColdCopiesLeaveTheCachesWithinTheBudget) {
  EXPECT_GE(cold_copies(1 << 20, 32 << 20, 1 << 30), 64u);
  EXPECT_EQ(cold_copies(1 << 20, 32 << 20, 8 << 20), 8u);
  EXPECT_EQ(cold_copies(uint64_t{2} << 30, 32 << 20, 1 << 30), 1u);
  EXPECT_GE(cold_copies(1 << 20, 0, 1 << 30), 128u) << "an unknown cache is taken for a large one";
}

}  // namespace
}  // namespace qcts
