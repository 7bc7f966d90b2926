// SPDX-License-Identifier: BSD-3-Clause
// The numerics kind: one kernel, one input, five or six calls, or three for the most expensive inputs.
// Outputs are prefilled with NaN, zeros or a wrong answer. Buffers are aligned and dense in the first call,
// as irregular as the ABI allows in the others, and at the edge of accessible memory in the last. Each answer
// is judged on its own.
#include <algorithm>
#include <cmath>

#include "reference/numerics/soft_float.h"
#include "suites/cases/offers.h"
#include "suites/inputs/generate_related.h"
#include "suites/judge/diagnosis/buffer_cause.h"
#include "suites/judge/diagnosis/conduct.h"
#include "suites/judge/diagnosis/explain.h"
#include "suites/judge/expected/coverage.h"
#include "suites/judge/expected/expectation.h"
#include "suites/judge/expected/sensitivity.h"
#include "suites/judge/expected/test_vector.h"
#include "suites/judge/first_answer.h"
#include "suites/judge/judge.h"
#include "suites/judge/numerics/beside.h"
#include "suites/judge/numerics/claims.h"
#include "suites/judge/numerics/far_case.h"
#include "suites/judge/numerics/no_rows.h"
#include "suites/judge/output_hash.h"
#include "suites/judge/replay.h"
#include "suites/providers/buffer_trials.h"

namespace qcts {
namespace {

// Returns the answer with its elements shifted: plausible values in the wrong places.
KernelAnswer shifted(KernelAnswer answer) {
  if (answer.y.size() > 4) std::rotate(answer.y.begin(), answer.y.begin() + 4, answer.y.end());
  for (Plane& plane : answer.planes)
    if (plane.bytes.size() > 1) std::rotate(plane.bytes.begin(), plane.bytes.begin() + 1, plane.bytes.end());
  return answer;
}

struct Attempt {
  std::string how;
  KernelRun& run;
  Poison poison;
  KernelAnswer answer;
  RunOptions options;
  const KernelAnswer* previous = nullptr;
};

// The irregular buffers that an input meets.
enum class Buffers { all, few };

// Tall inputs ask whether every row is reached, panels whether every panel is, and layers of a model both.
// They are expensive, the panels where a kernel is emulated, so they leave the most irregular buffers to
// other inputs.
Buffers buffers_of(const Case& c) {
  if (c.synthetic() == nullptr) return Buffers::all;
  const bool is_emulated = (c.implementation->kernel->claims & QCTS_CLAIM_EMULATED) != 0;
  const Generator generator = c.synthetic()->generator;
  const bool is_expensive = generator == Generator::tall || generator == Generator::many_rows ||
                            generator == Generator::layer || (is_emulated && generator == Generator::panels);
  return is_expensive ? Buffers::few : Buffers::all;
}

// A drawn problem has its own number of threads.
uint32_t threads_of(const Case& c, const JudgeContext& context) {
  return c.synthetic() && c.synthetic()->draw ? c.synthetic()->draw->threads : context.threads;
}

class NumericsJudge {
 public:
  // Coverage is recorded only if `case_id` is not empty.
  NumericsJudge(std::string_view case_id, const qcts_kernel& kernel, const TestVector& test_vector,
                const LinearReference* reference, InputKind kind, Buffers buffers, uint32_t threads,
                const JudgeContext& context, Verdict& verdict)
      : case_id_(case_id),
        kind_(kind),
        buffers_(buffers),
        kernel_(kernel),
        context_(context),
        threads_(threads),
        verdict_(verdict),
        test_vector_(test_vector),
        stages_(declared_stages(kernel, test_vector.input.x_dtype)),
        expectation_(test_vector, reference, stages_),
        claims_(kernel, test_vector.input, threads) {}

  void run() {
    if (!recorded_answer_holds()) return;
    const RunOptions dense{threads_, 0, 0};
    KernelRun first(kernel_, test_vector_.input, dense);
    const Support& support = first.supports();
    if (support.status == QCTS_UNSUPPORTED && kind_ == InputKind::reachable && first.accepts_other_values()) {
      verdict_.findings.push_back({Caveat::refused_by_values, ""});
      return fail("supports() refuses these values and accepts others at the same addresses: " +
                  support.reason);
    }
    if (is_declined(support, verdict_)) return;
    if (const Support early = first.supports_before_data(); early.status != QCTS_OK)
      return fail("supports() declines with NULL pointers what it accepts later: " + early.reason);
    if (test_vector_.is_refused) return judge_refusal(first);
    if (context_.coverage && !case_id_.empty())
      verdict_.coverage = context_.coverage->note(case_id_, test_vector_);
    const std::optional<KernelAnswer> tried = first_answer(first, kind_, verdict_);
    if (!tried) return;
    const KernelAnswer& answer = *tried;
    verdict_.output_hash = output_hash(kernel_, test_vector_.input, answer);
    if (!judged({"aligned and dense buffers, outputs poisoned with NaN", first, Poison::nan, answer, dense}))
      return;
    is_first_ = false;
    if (is_linear() &&
        (!holds(claims_.bit_exact(answer.y, expectation_.bounds())) || !holds(claims_.rows_alone(answer.y))))
      return;
    if ((buffers_ == Buffers::all && !run_irregular(answer)) ||
        !run_in(many_threads(test_vector_.input, threads_), false) ||
        !run_in(at_edges(test_vector_.input, threads_), true) ||
        (is_linear() && !holds(claims_.many_threads(answer.y))) || !relation_holds(answer))
      return;
    first.check_unchanged(answer);
    conclude();
  }

 private:
  void fail(std::string reason) {
    verdict_.status = Status::fail;
    verdict_.reason = std::move(reason);
  }

  bool is_linear() const { return test_vector_.input.op == Op::linear; }

  bool holds(std::optional<BrokenClaim> broken) {
    if (!broken) return true;
    verdict_.mismatch = std::move(broken->mismatch);
    fail(std::move(broken->reason));
    return false;
  }

  void judge_refusal(KernelRun& run) {
    try {
      const qcts_status status = run.attempt(Poison::nan);
      if (status == QCTS_FAILED)
        verdict_.status = Status::pass;
      else
        fail("run() returned " + std::to_string(static_cast<int>(status)) +
             " for a weight that the scheme cannot represent: want QCTS_FAILED");
    } catch (const FailedFault&) {  // a program answered "failed"
      verdict_.status = Status::pass;
    }
  }

  // Runs with the most irregular buffers the kernel accepts.
  bool run_irregular(const KernelAnswer& first_answer) {
    const KernelAnswer wrong = shifted(first_answer);
    for (const RunOptions& options : irregular_buffers(test_vector_.input, threads_)) {
      KernelRun run(kernel_, test_vector_.input, options);
      if (run.supports().status != QCTS_OK) continue;
      const std::string how = described(options, threads_);
      const Attempt zeros{how + ", outputs poisoned with zeros", run, Poison::zeros, run.run(Poison::zeros),
                          options};
      if (!judged(zeros)) return false;
      const Attempt stale{how + ", outputs prefilled with another answer",
                          run,
                          Poison::previous,
                          run.run(Poison::previous, &wrong),
                          options,
                          &wrong};
      if (!judged(stale)) return false;
      run.check_unchanged(stale.answer);
      verdict_.measures.push_back({"loose_buffers", "bool", options.gap_elems ? 1.0 : 0.0, {}, {}, {}});
      if (is_linear() && !holds(claims_.any_buffers(first_answer.y, zeros.answer.y, options, how)))
        return false;
      if (!(kernel_.claims & QCTS_CLAIM_DETERMINISTIC)) return true;
      if (zeros.answer.y == stale.answer.y) return true;
      fail("claims to be deterministic, but its answer depends on what the output held before");
      return false;
    }
    return true;
  }

  // Runs with the first buffers that the kernel accepts, or with all that it accepts.
  bool run_in(const std::vector<RunOptions>& trials, bool all) {
    for (const RunOptions& options : trials) {
      KernelRun run(kernel_, test_vector_.input, options);
      if (run.supports().status != QCTS_OK) continue;
      const std::string how = described(options, threads_);
      const std::string poison = options.flush == Flush::none ? ", outputs poisoned with zeros" : "";
      if (!judged({how + poison, run, Poison::zeros, run.run(Poison::zeros), options})) return false;
      if (!all) return true;
    }
    return true;
  }

  bool judged(const Attempt& attempt) {
    const Finding finding = expectation_.judge(attempt.answer);
    worst_ = std::max(worst_, finding.worst);
    if (!finding.mismatch) return true;
    verdict_.mismatch = finding.mismatch;
    std::string reason = finding.mismatch->where + ": want " + finding.mismatch->want + ", got " +
                         finding.mismatch->got + "; " + std::to_string(finding.mismatch->count) + " of " +
                         std::to_string(finding.mismatch->total) + " elements; " + attempt.how;
    if (context_.diagnose) reason += diagnosis(attempt, finding.mismatch->count);
    fail(std::move(reason));
    return false;
  }

  // Adds what is recognized to the findings and returns it in words.
  std::string diagnosis(const Attempt& attempt, uint64_t wrong_elems) const {
    const KernelInput& input = test_vector_.input;
    if (allows_anything(wrong_elems)) {
      verdict_.findings.push_back({Caveat::unnoticed_change, ""});
      return "; no bound follows from what the kernel declares, so no answer would be wrong here";
    }
    const auto conduct = conduct_of(
        {input, attempt.run, attempt.answer, attempt.poison, attempt.previous, wrong_elems, is_first_});
    if (!conduct) {
      const std::string cause =
          cause_in_buffers(kernel_, input, attempt.options,
                           [&](const KernelAnswer& answer) { return !expectation_.judge(answer).mismatch; });
      return cause.empty() ? weights_diagnosis(attempt.answer, wrong_elems) : "; " + cause;
    }
    verdict_.findings.push_back({conduct->caveat, ""});
    const bool has_answer = conduct->caveat == Caveat::wrote_part ||
                            conduct->caveat == Caveat::same_everywhere ||
                            conduct->caveat == Caveat::copied_input;
    return "; " + conduct->text + (has_answer ? weights_diagnosis(attempt.answer, wrong_elems) : "");
  }

  // Returns true if every wrong element is one whose bound is infinite or not a number.
  bool allows_anything(uint64_t wrong_elems) const {
    const auto without = std::ranges::count_if(expectation_.bounds(), [](const Bounded& want) {
      return std::isfinite(want.value) && (is_unbounded(want) || !(want.low <= want.high));
    });
    return without > 0 && static_cast<uint64_t>(without) >= wrong_elems;
  }

  std::string weights_diagnosis(const KernelAnswer& answer, uint64_t wrong_elems) const {
    return explained({kernel_, test_vector_, expectation_, stages_, answer, wrong_elems, threads_},
                     verdict_.findings);
  }

  // Checks the kernel's answers against each other, whatever the oracle says about them.
  bool relation_holds(const KernelAnswer& answer) {
    std::vector<std::vector<double>> answers;
    for (const KernelInput& input : test_vector_.related) {
      KernelRun run(kernel_, input, {threads_, 0, 0});
      const Support support = run.supports();
      if (support.status != QCTS_OK) {
        verdict_.status = Status::not_supported;
        verdict_.reason = "on the input for " + name_of_relation() + ": " + support.reason;
        return false;
      }
      answers.push_back(load_doubles(input.y_dtype, run.run(Poison::nan).y));
    }
    if (answers.empty()) return true;
    const KernelInput& input = test_vector_.input;
    std::vector<double> bias = load_doubles(input.bias_dtype, input.bias);
    if (bias.empty()) bias.resize(static_cast<size_t>(input.weight.n));
    const auto found =
        contradiction(test_vector_.relation.value(), load_doubles(input.y_dtype, answer.y), answers, bias);
    if (!found) return true;
    const std::string where = place_in_matrix("y", found->index, input.weight.n, 0);
    verdict_.mismatch =
        Mismatch{where, std::to_string(found->want), std::to_string(found->got), 1, answers[0].size()};
    fail("answers contradict each other under " + name_of_relation() + ": " + where + ": want " +
         verdict_.mismatch->want + ", got " + verdict_.mismatch->got);
    return false;
  }

  std::string name_of_relation() const { return std::string(generator_name(test_vector_.relation.value())); }

  // Checks the oracle itself: the real library's recorded answer must be within the bound for that library's
  // roundings.
  bool recorded_answer_holds() {
    if (test_vector_.recorded_y.empty()) return true;
    const KernelInput& input = test_vector_.input;
    const std::vector<Bounded> bounds = expectation_.reference().bounds(recorded_stages(test_vector_));
    const BoundedComparison compared = compare_bounded(bounds, input.y_dtype, test_vector_.recorded_y);
    if (compared.holds()) {
      verdict_.measures.push_back(
          {"recorded_worst_of_bound", "x", compared.worst, {}, {}, compared.total - compared.unbounded});
      return true;
    }
    verdict_.mismatch =
        mismatch_of(compared, place_in_matrix("recorded y", compared.first, input.weight.n, 0));
    fail(
        "the real library's recorded answer is outside the oracle's bound: the file, the oracle or "
        "the bound is wrong; " +
        verdict_.mismatch->where + ": want " + compared.want + ", got " + compared.got);
    return false;
  }

  void conclude() {
    const bool linear = test_vector_.input.op == Op::linear;
    bool sensitive = true;
    if (linear) {
      const double noticed = sensitivity_of_linear(test_vector_, expectation_, stages_);
      if (!expectation_.is_exact()) verdict_.measures.push_back({"worst_of_bound", "x", worst_, {}, {}, {}});
      const auto unbounded = std::ranges::count_if(expectation_.bounds(), is_unbounded);
      if (unbounded > 0)
        verdict_.measures.push_back(
            {"unbounded_outputs", "elems", static_cast<double>(unbounded), {}, {}, {}});
      verdict_.measures.push_back({"code_flips_noticed", "fraction", noticed, {}, {}, {}});
      sensitive = noticed > 0 || notices_skipped_zeros(test_vector_, expectation_);
      if (!sensitive && !expectation_.is_exact()) {
        const std::optional<double> of_few = sensitivity_on_sparse_x();
        if (!of_few) return;
        verdict_.measures.push_back({"code_flips_noticed_of_few", "fraction", *of_few, {}, {}, {}});
        sensitive = *of_few > 0;
      }
    } else {
      sensitive = bitwise_case_is_sensitive(test_vector_);
    }
    verdict_.status = Status::pass;
    if (!sensitive)
      verdict_.findings.push_back(
          {Caveat::unnoticed_change,
           linear ? "changing one code by one step would have passed too: the bound is too wide here"
                  : "a changed answer would have passed too"});
  }

  // If the bound a kernel declares hides a one-step change in long sums (for example with weights rounded to
  // bfloat16), measures the sensitivity again on the same weight with only two nonzero elements in each row
  // of x. nullopt: the answer is wrong, and the verdict says so.
  std::optional<double> sensitivity_on_sparse_x() {
    TestVector few;
    few.input = test_vector_.input;
    zero_all_but_two_per_row(few.input);
    const LinearReference reference(few.input);
    const Expectation expected(few, &reference, stages_);
    KernelRun run(kernel_, few.input, {threads_, 0, 0});
    if (run.supports().status != QCTS_OK) return 0;
    if (const Finding finding = expected.judge(run.run(Poison::nan)); finding.mismatch) {
      verdict_.mismatch = finding.mismatch;
      fail("with all but two elements of each row of x zeroed: " + finding.mismatch->where + ": want " +
           finding.mismatch->want + ", got " + finding.mismatch->got);
      return std::nullopt;
    }
    return sensitivity_of_linear(few, expected, stages_);
  }

  const std::string case_id_;
  const InputKind kind_;
  const Buffers buffers_;
  const qcts_kernel& kernel_;
  const JudgeContext& context_;
  const uint32_t threads_;
  Verdict& verdict_;
  const TestVector& test_vector_;
  const LinearStages stages_;
  const Expectation expectation_;
  const LinearClaims claims_;
  double worst_ = 0;
  bool is_first_ = true;  // no answer was right yet
};

}  // namespace

void judge_numerics(const Case& c, const JudgeContext& context, Verdict& verdict) {
  if (c.implementation == nullptr) throw std::logic_error("a numerics case without an implementation");
  if (c.synthetic() != nullptr && c.synthetic()->generator == Generator::far)
    return judge_far_case(c, context, verdict);
  TestVectorCache own;
  TestVectorCache& cache = context.test_vectors ? *context.test_vectors : own;
  const TestVector& test_vector = cache.get(c, context.seed, context.played);
  verdict.asked = asked_problem(c, test_vector.input);
  if (test_vector.input.has_no_rows())
    return judge_without_rows(*c.implementation->kernel, test_vector.input, context.threads, verdict);
  const LinearReference* reference = c.id.op == Op::linear ? &cache.reference() : nullptr;
  NumericsJudge(c.id.text(), *c.implementation->kernel, test_vector, reference, kind_of(c).kind,
                buffers_of(c), threads_of(c, context), context, verdict)
      .run();
  if (verdict.status == Status::pass && kind_of(c).kind == InputKind::reachable)
    judge_beside(c, context, test_vector.input, verdict);
}

void judge_test_vector(const qcts_kernel& kernel, const TestVector& test_vector, const JudgeContext& context,
                       Verdict& verdict) {
  if (test_vector.input.has_no_rows())
    return judge_without_rows(kernel, test_vector.input, context.threads, verdict);
  std::optional<LinearReference> reference;
  if (test_vector.input.op == Op::linear) reference.emplace(test_vector.input);
  NumericsJudge("", kernel, test_vector, reference ? &*reference : nullptr, InputKind::reachable,
                Buffers::all, context.threads, context, verdict)
      .run();
}

}  // namespace qcts
