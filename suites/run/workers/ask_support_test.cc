// SPDX-License-Identifier: BSD-3-Clause
// Tests that kernels are asked in their worker which cases they serve: the answers are theirs, and a kernel
// that crashes or hangs there loses only its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/cases/expand.h"
#include "suites/inputs/inputs.h"
#include "suites/run/workers/provider_slot.h"

namespace qcts {
namespace {

class AskedWorker {
 public:
  explicit AskedWorker(const std::string& provider) {
    ProviderSlot slot;
    slot.options.provider = provider;
    slot.options.settings.scratch = scratch_.path();
    slot.logs = scratch_.path();
    slots_.push_back(std::move(slot));
    start_workers(slots_, 60);
  }
  const WorkerReady& ready() const { return slots_[0].ready; }
  bool is_idle() const { return slots_[0].idle != nullptr; }
  std::vector<bool> ask(std::span<const SupportQuestion> questions, double timeout_s = 60) {
    return ask_support(slots_[0], questions, timeout_s);
  }

 private:
  ScratchFolder scratch_;
  std::vector<ProviderSlot> slots_;
};

class AskBuiltin : public testing::TestWithParam<const char*> {};

TEST_P(AskBuiltin, TheWorkerAnswersAsTheKernelsInThisProcessDo) {
  AskedWorker worker("builtin");
  ASSERT_EQ(worker.ready().error, "");
  Registry registry;
  registry.add(builtin_provider());
  OfferTable offers;
  offers.add(worker.ready().offers);
  size_t seen = 0;
  expand_paired(load_plan(plan_path(GetParam())), {}, offers, [&](std::span<const SupportQuestion> asked) {
    const std::vector<bool> answers = worker.ask(asked);
    EXPECT_EQ(answers, ask_registry(registry)(asked));
    seen = asked.size();
    return answers;
  });
  EXPECT_GT(seen, 10u);
  EXPECT_TRUE(worker.is_idle()) << "it goes on to judge";
}

INSTANTIATE_TEST_SUITE_P(Plans, AskBuiltin, testing::Values("quick", "latency"),
                         [](const auto& info) { return std::string(info.param); });

Case dequantize_case(DType dtype, int64_t k) {
  Case c;
  c.scheme = find_scheme("int8_row");
  c.question = SyntheticQuestion{{Generator::noise, {dtype, 7, k}, 1, 0, kWeightOnly}};
  c.id = {Kind::numerics, Op::dequantize, "int8_row", input_name(*c.synthetic(), Op::dequantize, kPlain)};
  return c;
}

struct AskedFault {
  const char* name;
  double timeout_s;
};
class AskFaulty : public testing::TestWithParam<AskedFault> {};

// The provider serves only float32 and fails when it is asked about k = 13.
TEST_P(AskFaulty, AKernelThatFailsWhenAskedCountsAsServing) {
  const auto [fault, timeout_s] = GetParam();
  const std::filesystem::path folder = executable_path().parent_path().parent_path() / "lib" / "selftest";
  AskedWorker worker((folder / (std::string("qcts_faulty_") + fault + ".so")).string());
  ASSERT_EQ(worker.ready().error, "");
  const Offer struck = worker.ready().offers.at(0), other = struck;  // two kernels for the supervisor
  const Case good = dequantize_case(DType::float32, 216), declined = dequantize_case(DType::bfloat16, 216),
             fails = dequantize_case(DType::float32, 13);
  const std::vector<SupportQuestion> questions = {{&good, &struck},  {&declined, &struck},
                                                  {&fails, &struck}, {&declined, &struck},
                                                  {&good, &other},   {&declined, &other}};
  EXPECT_THAT(worker.ask(questions, timeout_s), testing::ElementsAre(true, false, true, true, true, false));
  EXPECT_TRUE(worker.is_idle()) << "a new worker answered the rest";
}

INSTANTIATE_TEST_SUITE_P(Faults, AskFaulty,
                         testing::Values(AskedFault{"aborts_when_asked", 60},
                                         AskedFault{"hangs_when_asked", 2}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace qcts
