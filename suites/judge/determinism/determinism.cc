// SPDX-License-Identifier: BSD-3-Clause
// The determinism kind. Repeats a call, runs it with other thread counts, during a concurrent call, and row
// by row, and compares every answer bitwise with the first. A violated claim fails; a property the kernel
// does not claim is only measured. Concurrent calls must be right whatever the kernel claims, and so must
// calls after other data (states.h). Nothing that every call leaves behind is allowed (footprint.h).
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "reference/numerics/soft_float.h"
#include "suites/cases/offers.h"
#include "suites/judge/determinism/concurrent_calls.h"
#include "suites/judge/determinism/fresh_process.h"
#include "suites/judge/determinism/states.h"
#include "suites/judge/diagnosis/explain.h"
#include "suites/judge/expected/expectation.h"
#include "suites/judge/expected/test_vector.h"
#include "suites/judge/first_answer.h"
#include "suites/judge/judge.h"
#include "suites/judge/output_hash.h"
#include "suites/providers/footprint.h"
#include "suites/providers/provider_call.h"

namespace qcts {
namespace {

// More than the period of any planted intermittent fault (the longest: 29 calls), so that a single case hits
// it.
constexpr int kRepeats = 32;
constexpr int kFewRepeats = 12;  // where a plan deals out what costs more
// Races are a matter of chance, more so when other programs use the cores, so each thread count is tried many
// times.
struct Threads {
  uint32_t count;
  int repeats;
};
constexpr Threads kThreads[] = {{2, 16}, {3, 16}, {8, 4}};
constexpr int kFewer = 8;
constexpr size_t kMoved = 8;  // elements: 16 bytes of bfloat16, as an allocator may give
// More threads than most problems have parts, and than a table of 64 holds; only on plain noise.
constexpr Threads kCrowds[] = {{16, 1}, {67, 1}};
// An emulator that plans the schedule of its threads shows in four runs what chance needs many for; it has
// one thread and runs one call at a time (QCTS_CLAIM_SCHEDULES).
constexpr int kSchedules = 4;
constexpr Threads kThreadsOfSchedules = {2, 1};
constexpr size_t kCallsOfSpan = 70, kSpans = 3;  // after a first one that fills caches: 280 calls
constexpr RunOptions kGaps{.threads = 1, .misalign_elems = 3, .gap_elems = 5};
constexpr int64_t kConcurrentRows = 17;  // m of the concurrent calls to linear

struct Measurement {
  const char* name;  // measure name
  uint32_t claim;
  const char* claimed;
  uint64_t same = 0, calls = 0;
  std::string first = {};  // where the first difference was
};

constexpr int64_t kManyRowsOfX = 17;  // of noise

class DeterminismJudge {
 public:
  DeterminismJudge(const Case& c, const JudgeContext& context, Verdict& verdict)
      : case_(c),
        context_(context),
        kernel_(*c.implementation->kernel),
        kind_(kind_of(c).kind),
        asks_all_(is_dealt(c, context.costly_share)),
        verdict_(verdict),
        test_vector_(
            (context.test_vectors ? *context.test_vectors : own_).get(c, context.seed, context.played)) {
    verdict.asked = asked_problem(c, test_vector_.input);
  }

  void run() {
    KernelRun base(kernel_, test_vector_.input, {1, 0, 0});
    if (is_declined(base.supports(), verdict_)) return;
    std::optional<KernelAnswer> tried = first_answer(base, kind_, verdict_);
    if (!tried) return;
    first_ = *std::move(tried);
    verdict_.output_hash = output_hash(kernel_, test_vector_.input, first_);
    const KernelAnswer last = again(base);
    other_threads();
    base.check_unchanged_by_children(last);
    if (test_vector_.input.op == Op::linear && test_vector_.input.m > 1) rows_alone(base);
    conclude();
    if (has_states() && !is_right(test_vector_, first_, "without another call")) return;
    const bool runs_concurrently =
        test_vector_.input.op != Op::linear || test_vector_.input.m == kConcurrentRows;
    if (runs_concurrently && verdict_.status == Status::pass) judge_concurrent_calls();
    if (has_states() && verdict_.status == Status::pass)
      judge_states(case_, context_, test_vector_, verdict_);
    if (verdict_.status == Status::pass && asks_all_ && has_cheap_noise()) judge_side_effects(base);
  }

 private:
  // Other data of this kind must be as welcome as this. An input that is refused has no answer.
  bool has_states() const {
    return case_.synthetic() != nullptr && kind_ == InputKind::reachable && !test_vector_.is_refused;
  }

  bool is_noise() const {
    return case_.synthetic() != nullptr && case_.synthetic()->generator == Generator::noise;
  }

  // Short calls show what calls leave behind as well as long ones do.
  bool has_cheap_noise() const {
    return is_noise() && !has_schedules() &&
           (test_vector_.input.op != Op::linear || test_vector_.input.m == 1 ||
            test_vector_.input.m == kManyRowsOfX);
  }

  bool has_schedules() const { return (kernel_.claims & QCTS_CLAIM_SCHEDULES) != 0; }

  // Returns the last answer.
  KernelAnswer again(KernelRun& base) {
    KernelAnswer last;
    for (int i = 0; i < (has_schedules() ? kSchedules : asks_all_ ? kRepeats : kFewRepeats); ++i) {
      last = base.run(i % 2 == 0 ? Poison::zeros : Poison::nan);
      count(repeats_, last, "repeat " + std::to_string(i + 1));
    }
    // An allocator's addresses change from run to run.
    KernelRun moved(kernel_, test_vector_.input, {.misalign_elems = kMoved});
    if (moved.supports().status == QCTS_OK)
      count(repeats_, moved.run(Poison::zeros),
            "a call with every buffer " + std::to_string(kMoved) + " elements further on");
    return last;
  }

  void other_threads() {
    if (has_schedules()) return other_threads({&kThreadsOfSchedules, 1});
    other_threads(kThreads);
    if (asks_all_ && is_noise()) other_threads(kCrowds);
  }

  void other_threads(std::span<const Threads> counts) {
    for (const Threads& threads : counts) {
      KernelRun run(kernel_, test_vector_.input, {threads.count, 0, 0});
      if (run.supports().status != QCTS_OK) continue;
      for (int i = 0; i < (asks_all_ ? threads.repeats : 1 + threads.repeats / kFewer); ++i)
        count(threads_, run.run(Poison::zeros), std::to_string(threads.count) + " threads instead of 1");
    }
  }

  // A device's driver has its own memory and threads.
  void judge_side_effects(KernelRun& base) {
    std::array<Footprint, kSpans + 1> seen;
    if (base.problem().device != 0 || !provider_footprint(kernel_)) return;
    base.run_flushed();
    std::vector<qcts_problem> calls(kCallsOfSpan, base.problem());
    KernelRun with_gaps(kernel_, test_vector_.input, kGaps);
    if (with_gaps.supports().status == QCTS_OK) {
      with_gaps.run(Poison::zeros);
      std::fill_n(calls.begin(), kCallsOfSpan / 2, with_gaps.problem());
    }
    std::optional<KernelRun> with_nan;
    if (const std::optional<KernelInput> input = with_nan_in_x()) {
      if (with_nan.emplace(kernel_, *input, RunOptions{}).supports().status == QCTS_OK) {
        with_nan->run(Poison::zeros);
        std::fill_n(calls.end() - kCallsOfSpan / 4, kCallsOfSpan / 4, with_nan->problem());
      }
    }
    for (Footprint& footprint : seen) {
      provider_run_batch(kernel_, calls, [] {});
      const std::optional<Footprint> now = provider_footprint(kernel_);
      if (!now) return;
      footprint = *now;
    }
    verdict_.reason = side_effect(seen, kCallsOfSpan);
    if (!verdict_.reason.empty()) verdict_.status = Status::fail;
  }

  // Each row ends with NaN: a path for rows that are not finite may leave something behind, too.
  std::optional<KernelInput> with_nan_in_x() const {
    if (!has_states() || test_vector_.input.x.empty()) return std::nullopt;
    KernelInput input = test_vector_.input;
    const DType dtype = input.op == Op::quantize ? input.weight.dtype : input.x_dtype;
    const auto k = static_cast<size_t>(input.weight.k);
    for (size_t end = k; end <= input.x.size() / dtype_bytes(dtype); end += k)
      store_float(dtype, input.x, end - 1, std::numeric_limits<double>::quiet_NaN());
    return test_vector_for(input).is_refused ? std::nullopt : std::optional(std::move(input));
  }

  // Two concurrent callers: one runs the test vector, the other the same with other data.
  void judge_concurrent_calls() {
    const bool has_other_data = has_states() || !test_vector_.input.x.empty();
    const TestVector other_data =
        has_other_data ? with_other_data(case_, context_, test_vector_.input) : test_vector_;
    const JudgedProblem given(test_vector_, kernel_), other(other_data, kernel_);
    const std::optional<ConcurrentFault> fault =
        fault_of_concurrent_calls(kernel_, {&given, &other}, asks_all_ ? Overlap::in_batches : Overlap::some);
    if (!fault) return;
    if (fault->is_alone) {
      if (fault->caller == 0)
        is_right(test_vector_, fault->answer, "without another call");
      else
        is_right(other_data, fault->answer, "with other data, with no other call running");
      return;
    }
    verdict_.status = Status::fail;
    verdict_.mismatch = fault->mismatch;
    verdict_.reason = "wrong while another thread calls the kernel: " + fault->mismatch.where + ": want " +
                      fault->mismatch.want + ", got " + fault->mismatch.got;
  }

  // Judges an answer that was given with no other call running, and fills in the verdict if it is wrong.
  bool is_right(const TestVector& test_vector, const KernelAnswer& answer, const std::string& when) {
    std::optional<LinearReference> reference;
    if (test_vector.input.op == Op::linear) reference.emplace(test_vector.input);
    const LinearStages stages = declared_stages(kernel_, test_vector.input.x_dtype);
    const Expectation expected(test_vector, reference ? &*reference : nullptr, stages);
    const Finding finding = expected.judge(answer);
    if (!finding.mismatch) return true;
    verdict_.status = Status::fail;
    verdict_.mismatch = finding.mismatch;
    verdict_.reason = "wrong " + when + ": " + finding.mismatch->where + ": want " + finding.mismatch->want +
                      ", got " + finding.mismatch->got;
    if (context_.diagnose)
      verdict_.reason += explained(
          {kernel_, test_vector, expected, stages, answer, finding.mismatch->count, 1}, verdict_.findings);
    return false;
  }

  // Runs each row on its own, on the weight that was prepared for all rows.
  void rows_alone(KernelRun& base) {
    KernelInput alone = test_vector_.input;
    const size_t rows = static_cast<size_t>(alone.m), x_row = alone.x.size() / rows,
                 y_row = first_.y.size() / rows;
    alone.m = 1;
    alone.x.resize(x_row);
    KernelRun run(kernel_, alone, {1, 0, 0});
    if (run.supports().status != QCTS_OK) return;
    base.hand_over_prepared(run);
    for (size_t i = 0; i < rows; ++i) {
      const auto row = std::span(test_vector_.input.x).subspan(i * x_row, x_row);
      run.set_x(row);
      const auto wanted = std::span(first_.y).subspan(i * y_row, y_row);
      const KernelAnswer answer = run.run(Poison::zeros);
      const bool is_same = compare(batch_, {{wanted.begin(), wanted.end()}, {}}, answer,
                                   "row " + std::to_string(i) + " alone");
      if (is_same || !wrong_alone_.empty()) continue;
      alone.x.assign(row.begin(), row.end());
      wrong_alone_ = fault_alone(alone, answer, "row " + std::to_string(i) + " alone");
    }
  }

  // Another answer for a row alone may be as right as the first. If it is not, says whether the prepared
  // weight is why.
  std::string fault_alone(const KernelInput& alone, const KernelAnswer& answer, const std::string& how) {
    const TestVector test_vector = test_vector_for(alone);
    const LinearReference reference(test_vector.input);
    const Expectation expected(test_vector, &reference, declared_stages(kernel_, alone.x_dtype));
    const Finding finding = expected.judge(answer);
    if (!finding.mismatch) return "";
    KernelRun own(kernel_, test_vector.input, {1, 0, 0});
    const bool is_right = !expected.judge(own.run(Poison::zeros)).mismatch;
    verdict_.mismatch = finding.mismatch;
    return "wrong for " + how + " with the weight that was prepared for " +
           std::to_string(test_vector_.input.m) + " rows" +
           (is_right ? ", but right with the weight prepared for a single row" : "") + ": " +
           finding.mismatch->where + ": want " + finding.mismatch->want + ", got " + finding.mismatch->got;
  }

  void count(Measurement& measurement, const KernelAnswer& answer, const std::string& how) {
    compare(measurement, first_, answer, how);
  }

  bool compare(Measurement& measurement, const KernelAnswer& want, const KernelAnswer& got,
               const std::string& how) {
    ++measurement.calls;
    const std::optional<Mismatch> mismatch = difference(want, got);
    if (!mismatch) {
      ++measurement.same;
    } else if (measurement.first.empty()) {
      measurement.first = how + ": " + mismatch->where + ": " + mismatch->want + " became " + mismatch->got;
      if (kernel_.claims & measurement.claim) verdict_.mismatch = mismatch;
    }
    return !mismatch;
  }

  std::optional<Mismatch> difference(const KernelAnswer& want, const KernelAnswer& got) const {
    const KernelInput& input = test_vector_.input;
    if (want.planes.empty()) {
      const bool linear = input.op == Op::linear;
      const DType dtype = linear ? input.y_dtype : input.weight.dtype;
      const Comparison compared = compare_bitwise(dtype, want.y, got.y);
      if (compared.equal()) return std::nullopt;
      const int64_t cols = linear ? input.weight.n : input.weight.k;
      Mismatch mismatch = mismatch_of(compared, place_in_matrix("y", compared.first, cols, 0));
      if (mismatch.count > 0)
        mismatch.map = wrong_map("y", wrong_elements(dtype, want.y, got.y), static_cast<uint64_t>(cols));
      return mismatch;
    }
    if (input.op == Op::quantize_activation) return compare_activation_planes(want.planes, got.planes);
    return compare_planes(*input.scheme, input.weight, input.op == Op::pack ? input.layout : kPlain,
                          want.planes, got.planes);
  }

  void conclude() {
    verdict_.status = Status::pass;
    for (const Measurement* measurement : {&repeats_, &threads_, &batch_}) {
      if (measurement->calls == 0) continue;
      verdict_.measures.push_back(
          {measurement->name,
           "fraction",
           static_cast<double>(measurement->same) / static_cast<double>(measurement->calls),
           {},
           {},
           measurement->calls});
      if (measurement->same == measurement->calls || !(kernel_.claims & measurement->claim)) continue;
      if (verdict_.status != Status::fail)
        verdict_.reason = std::string("claims to be ") + measurement->claimed + ", but " + measurement->first;
      verdict_.status = Status::fail;
    }
    if (wrong_alone_.empty()) return;
    verdict_.status = Status::fail;
    verdict_.reason = wrong_alone_;
  }

  const Case& case_;
  const JudgeContext& context_;
  const qcts_kernel& kernel_;
  const InputKind kind_;
  const bool asks_all_;  // what costs most too
  Verdict& verdict_;
  TestVectorCache own_;
  const TestVector& test_vector_;
  KernelAnswer first_;
  std::string wrong_alone_;  // a row alone is wrong, not only another answer
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
