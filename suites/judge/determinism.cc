// SPDX-License-Identifier: BSD-3-Clause
// The determinism kind: the same call again, with other numbers of threads, beside another one, and each row
// alone. Every answer is compared bitwise with the first; what the kernel claims is held against it, what it
// does not claim is measured. Whatever it claims, calls side by side have to be right.
#include <array>
#include <barrier>
#include <exception>
#include <optional>
#include <thread>

#include "suites/judge/expected/expectation.h"
#include "suites/judge/expected/question.h"
#include "suites/judge/judge.h"

namespace qcts {
namespace {

// More than the period of any planted fault that strikes once in so many calls (the longest: 29), so that one
// case is enough to meet it.
constexpr int kRepeats = 32;
// Threads that race meet or miss each other, the more so where another program has a core: each number of
// them is tried often.
struct Threads {
  uint32_t count;
  int repeats;
};
constexpr Threads kThreads[] = {{2, 16}, {3, 16}, {8, 4}};
// Calls on distinct outputs at the same time.
constexpr size_t kCallers = 2;
constexpr int kCallsSideBySide = 16;
constexpr int64_t kRowsSideBySide = 17;  // of linear, which is asked with several

struct Measurement {
  const char* name;  // of the measure
  uint32_t claim;
  const char* claimed;
  uint64_t same = 0, asked = 0;
  std::string first = {};  // where the first difference was
};

class DeterminismJudge {
 public:
  DeterminismJudge(const Case& c, const JudgeContext& context, Verdict& verdict)
      : kernel_(*c.implementation->kernel),
        verdict_(verdict),
        question_((context.asked ? *context.asked : own_).ask(c, context.seed)) {}

  void run() {
    KernelRun base(kernel_, question_.input, {1, 0, 0});
    const Support support = base.supports();
    if (support.status != QCTS_OK) {
      verdict_.status = support.status == QCTS_UNSUPPORTED ? Status::not_supported : Status::fail;
      verdict_.reason = support.reason;
      return;
    }
    try {
      first_ = base.run(Poison::nan);
      again(base);
      other_threads();
      if (question_.input.op == Op::linear && question_.input.m > 1) rows_alone(base);
      conclude();
      const bool is_asked = question_.input.op != Op::linear || question_.input.m == kRowsSideBySide;
      if (is_asked && verdict_.status == Status::pass) judge_side_by_side();
    } catch (const ProviderFault& fault) {
      verdict_.status = Status::fail;
      verdict_.reason = fault.what();
    }
  }

 private:
  void again(KernelRun& base) {
    for (int i = 0; i < kRepeats; ++i)
      count(repeats_, base.run(i % 2 == 0 ? Poison::zeros : Poison::nan), "repeat " + std::to_string(i + 1));
  }

  void other_threads() {
    for (const Threads& threads : kThreads) {
      KernelRun run(kernel_, question_.input, {threads.count, 0, 0});
      if (run.supports().status != QCTS_OK) continue;
      for (int i = 0; i < threads.repeats; ++i)
        count(threads_, run.run(Poison::zeros), std::to_string(threads.count) + " threads instead of 1");
    }
  }

  // Two callers, one with the question, one with -x in place of x, where it has an x.
  void judge_side_by_side() {
    const std::array<Question, kCallers> questions = {question_, of_negative_x()};
    std::array<std::optional<KernelRun>, kCallers> runs;
    std::array<std::vector<KernelAnswer>, kCallers> answers;
    for (size_t i = 0; i < kCallers; ++i)
      answers[i].push_back(runs[i].emplace(kernel_, questions[i].input, RunOptions{}).run(Poison::zeros));
    std::array<std::exception_ptr, kCallers> faults;
    std::barrier together(static_cast<ptrdiff_t>(kCallers));
    const auto call = [&](size_t i) {
      together.arrive_and_wait();
      try {
        for (int n = 0; n < kCallsSideBySide; ++n) answers[i].push_back(runs[i]->run(Poison::zeros));
      } catch (...) {
        faults[i] = std::current_exception();
      }
    };
    std::jthread other(call, size_t{1});
    call(0);
    other.join();
    for (size_t i = 0; i < kCallers; ++i) {
      if (faults[i]) std::rethrow_exception(faults[i]);
      if (!all_right(questions[i], answers[i])) return;
    }
  }

  bool all_right(const Question& question, const std::vector<KernelAnswer>& answers) {
    std::optional<LinearTruth> truth;
    if (question.input.op == Op::linear) truth.emplace(question.input);
    const Expectation expected(question, truth ? &*truth : nullptr, kernel_.numerics);
    for (const KernelAnswer& answer : answers) {
      const Finding finding = expected.judge(answer);
      if (!finding.mismatch) continue;
      verdict_.status = Status::fail;
      verdict_.mismatch = finding.mismatch;
      verdict_.reason = "wrong beside another call in another thread: " + finding.mismatch->where +
                        ": want " + finding.mismatch->want + ", got " + finding.mismatch->got;
      return false;
    }
    return true;
  }

  Question of_negative_x() const {
    if (question_.input.x.empty()) return question_;
    KernelInput input = question_.input;
    const size_t bytes =
        input.op == Op::quantize ? dtype_bytes(input.weight.dtype) : dtype_bytes(input.x_dtype);
    for (size_t sign = bytes - 1; sign < input.x.size(); sign += bytes) input.x[sign] ^= std::byte{0x80};
    return question_about(std::move(input));
  }

  // By what was prepared for all of them.
  void rows_alone(KernelRun& base) {
    KernelInput alone = question_.input;
    const size_t rows = static_cast<size_t>(alone.m), x_row = alone.x.size() / rows,
                 y_row = first_.y.size() / rows;
    alone.m = 1;
    alone.x.resize(x_row);
    KernelRun run(kernel_, alone, {1, 0, 0});
    if (run.supports().status != QCTS_OK) return;
    base.hand_over_prepared(run);
    for (size_t i = 0; i < rows; ++i) {
      run.set_x(std::span(question_.input.x).subspan(i * x_row, x_row));
      const auto wanted = std::span(first_.y).subspan(i * y_row, y_row);
      compare(batch_, {{wanted.begin(), wanted.end()}, {}}, run.run(Poison::zeros),
              "row " + std::to_string(i) + " alone");
    }
  }

  void count(Measurement& measurement, const KernelAnswer& answer, const std::string& how) {
    compare(measurement, first_, answer, how);
  }

  void compare(Measurement& measurement, const KernelAnswer& want, const KernelAnswer& got,
               const std::string& how) {
    ++measurement.asked;
    const std::optional<Mismatch> mismatch = difference(want, got);
    if (!mismatch) {
      ++measurement.same;
    } else if (measurement.first.empty()) {
      measurement.first = how + ": " + mismatch->where + ": " + mismatch->want + " became " + mismatch->got;
      if (kernel_.claims & measurement.claim) verdict_.mismatch = mismatch;
    }
  }

  std::optional<Mismatch> difference(const KernelAnswer& want, const KernelAnswer& got) const {
    const KernelInput& input = question_.input;
    if (want.planes.empty()) {
      const bool linear = input.op == Op::linear;
      const Comparison compared = compare_bitwise(linear ? input.y_dtype : input.weight.dtype, want.y, got.y);
      if (compared.equal()) return std::nullopt;
      const int64_t cols = linear ? input.weight.n : input.weight.k;
      const int64_t first = static_cast<int64_t>(compared.first);
      return Mismatch{"y: row " + std::to_string(first / cols) + ", column " + std::to_string(first % cols),
                      compared.want, compared.problem.empty() ? compared.got : compared.problem,
                      compared.differing, compared.total};
    }
    if (input.op == Op::quantize_activation) return compare_activation_planes(want.planes, got.planes);
    return compare_planes(*input.scheme, input.weight, input.op == Op::pack ? input.layout : kPlain,
                          want.planes, got.planes);
  }

  void conclude() {
    verdict_.status = Status::pass;
    for (const Measurement* measurement : {&repeats_, &threads_, &batch_}) {
      if (measurement->asked == 0) continue;
      verdict_.measures.push_back(
          {measurement->name,
           "fraction",
           static_cast<double>(measurement->same) / static_cast<double>(measurement->asked),
           {},
           {},
           measurement->asked});
      if (measurement->same == measurement->asked || !(kernel_.claims & measurement->claim)) continue;
      if (verdict_.status != Status::fail)
        verdict_.reason = std::string("claims to be ") + measurement->claimed + ", but " + measurement->first;
      verdict_.status = Status::fail;
    }
  }

  const qcts_kernel& kernel_;
  Verdict& verdict_;
  LastQuestion own_;
  const Question& question_;
  KernelAnswer first_;
  Measurement repeats_{"same_run_to_run", QCTS_CLAIM_DETERMINISTIC, "deterministic"};
  Measurement threads_{"same_for_threads", QCTS_CLAIM_THREAD_INVARIANT, "thread-invariant"};
  Measurement batch_{"same_row_alone", QCTS_CLAIM_BATCH_INVARIANT, "batch-invariant"};
};

}  // namespace

void judge_determinism(const Case& c, const JudgeContext& context, Verdict& verdict) {
  if (c.implementation == nullptr) throw std::logic_error("a determinism case without an implementation");
  DeterminismJudge(c, context, verdict).run();
}

}  // namespace qcts
