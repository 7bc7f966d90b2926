// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/determinism/concurrent_calls.h"

#include <barrier>
#include <cmath>
#include <deque>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "reference/numerics/soft_float.h"
#include "suites/judge/determinism/states.h"
#include "suites/providers/kernel_run.h"
#include "suites/providers/provider_call.h"

namespace qcts {
namespace {

// A round trip to the host takes longer than a small call, so calls one by one hardly ever overlap. A batch
// runs in the host without the judge, and each of its calls has its own outputs.
constexpr size_t kInBatch = 3, kBatches = 4;
constexpr size_t kOneByOne = 16;  // also on a device, which takes no batches

class ConcurrentCalls {
 public:
  ConcurrentCalls(const qcts_kernel& kernel, const std::array<const JudgedProblem*, kCallers>& problems,
                  Overlap overlap)
      : kernel_(kernel),
        problems_(problems),
        overlap_(overlap),
        has_schedules_((kernel.claims & QCTS_CLAIM_SCHEDULES) != 0) {
    for (size_t i = 0; i < kCallers; ++i) do
        runs_[i].emplace_back(kernel, problems[i]->input(), RunOptions{});
      while (is_in_batches(i) && runs_[i].size() < kInBatch);
  }

  std::optional<ConcurrentFault> run() && {
    if (overlap_ != Overlap::from_the_first)
      for (size_t i = 0; i < kCallers; ++i)
        if (auto fault = judged(i, runs_[i].front().run(Poison::zeros), true)) return fault;
    std::jthread other([this] { call(1); });
    call(0);
    other.join();
    for (size_t i = 0; i < kCallers; ++i) {
      if (faults_[i]) std::rethrow_exception(faults_[i]);
      for (KernelAnswer& answer : answers_[i])
        if (auto fault = judged(i, std::move(answer), false)) return fault;
    }
    return std::nullopt;
  }

 private:
  bool is_in_batches(size_t caller) const {
    return overlap_ != Overlap::some && !has_schedules_ && runs_[caller].front().problem().device == 0;
  }

  void call(size_t caller) {
    const auto begin_together = [this] { together_.arrive_and_wait(); };
    try {
      if (is_in_batches(caller)) {
        for (size_t i = 0; i < kBatches; ++i) call_batch(caller, begin_together);
        return;
      }
      begin_together();
      for (size_t i = 0; i < (has_schedules_ ? 1 : kOneByOne); ++i)
        answers_[caller].push_back(runs_[caller].front().run(Poison::zeros));
    } catch (...) {
      faults_[caller] = std::current_exception();
      together_.arrive_and_drop();
    }
  }

  template <class Begin>
  void call_batch(size_t caller, const Begin& begin_together) {
    std::vector<qcts_problem> problems;
    for (KernelRun& run : runs_[caller]) problems.push_back(run.poisoned(Poison::zeros));
    provider_run_batch(kernel_, problems, begin_together);
    for (const KernelRun& run : runs_[caller]) answers_[caller].push_back(run.answer());
  }

  std::optional<ConcurrentFault> judged(size_t caller, KernelAnswer answer, bool is_alone) const {
    std::optional<Mismatch> mismatch = problems_[caller]->judge(answer);
    if (!mismatch) return std::nullopt;
    return ConcurrentFault{caller, std::move(answer), *std::move(mismatch), is_alone};
  }

  const qcts_kernel& kernel_;
  const std::array<const JudgedProblem*, kCallers> problems_;
  const Overlap overlap_;
  const bool has_schedules_;
  std::array<std::deque<KernelRun>, kCallers> runs_;
  std::array<std::vector<KernelAnswer>, kCallers> answers_;
  std::array<std::exception_ptr, kCallers> faults_;
  std::barrier<> together_{static_cast<ptrdiff_t>(kCallers)};
};

}  // namespace

std::optional<ConcurrentFault> fault_of_concurrent_calls(
    const qcts_kernel& kernel, const std::array<const JudgedProblem*, kCallers>& problems, Overlap overlap) {
  return ConcurrentCalls(kernel, problems, overlap).run();
}

// A sign alone would leave the maximum of the absolute values as it is.
TestVector with_other_data(const Case& c, const JudgeContext& context, const KernelInput& input) {
  if (input.x.empty())
    return c.synthetic() ? make_test_vector(c, context.seed + kOtherSeed, context.played)
                         : test_vector_for(input);
  KernelInput other = input;
  const DType dtype = input.op == Op::quantize ? input.weight.dtype : input.x_dtype;
  const double max = float_format(dtype).max;
  for (size_t i = 0; i < input.x.size() / dtype_bytes(dtype); ++i) {
    const double value = load_float(dtype, input.x, i);
    store_float(dtype, other.x, i, 2 * std::fabs(value) > max ? -value : -2 * value);
  }
  return test_vector_for(std::move(other));
}

}  // namespace qcts
