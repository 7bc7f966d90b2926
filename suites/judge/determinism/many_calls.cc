// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/determinism/many_calls.h"

#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "suites/inputs/generate_parts.h"
#include "suites/inputs/inputs.h"
#include "suites/judge/determinism/fresh_process.h"
#include "suites/judge/determinism/neighbours.h"
#include "suites/judge/determinism/states.h"
#include "suites/providers/footprint.h"
#include "suites/providers/hosted_provider.h"

namespace qcts {
namespace {

constexpr size_t kCopies = 8;         // that one message calls, each with its own output
constexpr size_t kBetween = 255;      // calls between two larger problems, which are then 256 calls apart
constexpr size_t kCallsAtLast = 130;  // after the third: 640 calls of the small problem
constexpr size_t kCallsApart = 128;   // after which memory is measured
constexpr size_t kSureCalls = 1024;   // of a span that has to show the same
constexpr uint64_t kLeastBytes = 4096, kBytesACall = 64;
constexpr int64_t kLargerRows = 9;  // of x

// The problem with one row of x.
KernelInput small(const KernelInput& given) {
  KernelInput input = given;
  if (!input.has_rows_of_x()) return input;
  input.x.resize(input.x.size() / static_cast<size_t>(input.m));
  input.m = 1;
  return input;
}

bool takes(const Case& c, const WeightShape& shape) {
  return !c.scheme->refusal(shape) && !c.scheme->refusal(shape, c.layout());
}

// Two shapes with as many rows whose numbers of groups differ by 256, which a byte does not tell apart.
std::vector<WeightShape> shapes_256_groups_apart(const Case& c) {
  constexpr int64_t kGroups = 256, kMaxElements = int64_t{1} << 21;
  const DType dtype = c.synthetic()->weight.dtype;
  const int64_t unit = std::max<int64_t>(c.scheme->group(), 32);
  // More rows than a block of 128 has, so that the second block's place depends on k; few where sums cost
  // more.
  const std::array<int64_t, 3> rows =
      c.id.op == Op::linear ? std::array<int64_t, 3>{16, 16, 128} : std::array<int64_t, 3>{160, 160, 256};
  for (const auto& [n, k] :
       {std::array{rows[0], 4 * unit}, std::array{rows[1], unit}, std::array{rows[2], 4 * unit}})
    if (n * (k + kGroups * unit) <= kMaxElements && takes(c, {dtype, n, k}) &&
        takes(c, {dtype, n, k + kGroups * unit}))
      return {{dtype, n, k + kGroups * unit}, {dtype, n, k}};
  return {};
}

// Two shapes with as many rows, more than a block of 128, and another k.
std::vector<WeightShape> larger_shapes(const Case& c) {
  const DType dtype = c.synthetic()->weight.dtype;
  const int64_t unit = std::max<int64_t>(c.scheme->group(), 32);
  for (const auto& [n, first, second] :
       {std::array{int64_t{144}, 2 * unit, 3 * unit}, std::array{int64_t{160}, int64_t{512}, int64_t{1024}},
        std::array{int64_t{256}, int64_t{512}, int64_t{1024}}})
    if (takes(c, {dtype, n, first}) && takes(c, {dtype, n, second}))
      return {{dtype, n, first}, {dtype, n, second}};
  return {};
}

class ManyCalls {
 public:
  ManyCalls(const Case& c, const JudgeContext& context, const qcts_kernel& kernel, const KernelInput& given)
      : case_(c), context_(context), kernel_(kernel), small_(test_vector_for(small(given)), kernel) {
    for (size_t i = 0; i < kCopies; ++i) {
      // In every other copy, rows have gaps, if the kernel takes them.
      const RunOptions options[] = {{.gap_elems = i % 2 * 5}, {}};
      for (const RunOptions& each : options) {
        KernelRun& run = copies_.emplace_back(kernel, small_.input(), each);
        if (run.supports().status == QCTS_OK) break;
        copies_.pop_back();
      }
    }
    add(larger_shapes(c), context, larger_);
    add(shapes_256_groups_apart(c), context, apart_);
  }

  std::optional<FaultOfCalls> run() && {
    if (copies_.size() < kCopies) return std::nullopt;
    for (Larger& larger : larger_)
      if (const std::string effect = effect_of_few_calls(kernel_, larger.run); !effect.empty())
        return FaultOfCalls{effect, {}};
    for (KernelRun& copy : copies_) copy.prepare();
    if (!keeps_shapes_apart() || !keeps_prepared_weights()) return std::move(fault_);
    for (const auto& [before, calls] : {std::pair{0, kBetween}, {1, kBetween}, {0, kCallsAtLast}})
      if (!call_larger(static_cast<size_t>(before)) || !call_small(calls)) return std::move(fault_);
    provider_run_batch(kernel_, repeated(kSureCalls), [] {});
    if (!call_small(kCopies)) return std::move(fault_);
    if (const uint64_t kept = kept_bytes(); kept > 0)
      return FaultOfCalls{"keeps memory: " + std::to_string(kept) + " bytes of " +
                              std::to_string(kSureCalls) + " calls, every other one with gaps between rows",
                          {}};
    return std::nullopt;
  }

 private:
  struct Larger {
    JudgedProblem problem;
    KernelRun run;
    Larger(TestVector test_vector, const qcts_kernel& kernel)
        : problem(std::move(test_vector), kernel), run(kernel, problem.input(), {}) {}
  };

  void add(const std::vector<WeightShape>& shapes, const JudgeContext& context, std::deque<Larger>& made) {
    for (const WeightShape& shape : shapes) {
      const Case other = with_noise_of(case_, shape, kLargerRows);
      Larger& added = made.emplace_back(make_test_vector(other, context.seed, context.played), kernel_);
      if (added.run.supports().status != QCTS_OK || added.problem.is_refused()) made.pop_back();
    }
  }

  bool keeps_shapes_apart() {
    if (apart_.size() < 2) return true;
    for (const size_t which : {0, 1, 0}) {
      Larger& problem = apart_[which];
      const std::optional<Mismatch> mismatch = problem.problem.judge(problem.run.run(Poison::zeros));
      if (!mismatch) continue;
      const WeightShape &shape = problem.problem.input().weight,
                        &other = apart_[1 - which].problem.input().weight;
      fault_ = {"wrong in a problem of n " + std::to_string(shape.n) + ", k " + std::to_string(shape.k) +
                    " near one of n " + std::to_string(other.n) + ", k " + std::to_string(other.k) + ": " +
                    text(*mismatch),
                mismatch};
      return false;
    }
    return true;
  }

  // A table of prepared weights that is full must not give a weight the place of another.
  bool keeps_prepared_weights() {
    constexpr size_t kWeights = 300;
    if (copies_.front().prepared_bytes() == 0 || case_.id.op != Op::linear) return true;
    KernelInput other = small_.input();
    Floats smaller = noise_weight(*case_.scheme, other.weight, kOtherSeed);
    for (double& value : smaller.values) value /= 64;
    std::ranges::copy(quantized(*case_.scheme, other.weight, smaller.bytes()), other.planes.begin());
    std::deque<KernelRun> others;
    for (size_t i = 0; i < kWeights; ++i) others.emplace_back(kernel_, other, RunOptions{}).prepare();
    if (const auto mismatch = small_.judge(copies_.front().run(Poison::zeros))) {
      fault_ = {
          "wrong after " + std::to_string(kWeights) + " other weights were prepared: " + text(*mismatch),
          mismatch};
      return false;
    }
    return true;
  }

  std::vector<qcts_problem> repeated(size_t calls) const {
    std::vector<qcts_problem> problems;
    for (size_t i = 0; i < calls; ++i) problems.push_back(copies_[i % kCopies].problem());
    return problems;
  }

  bool call_larger(size_t which) {
    if (larger_.size() < 2) return true;
    Larger& larger = larger_[which];
    const std::optional<Mismatch> mismatch = larger.problem.judge(larger.run.run(Poison::zeros));
    if (!mismatch) return true;
    const WeightShape &shape = larger.problem.input().weight,
                      &other = larger_[1 - which].problem.input().weight;
    fault_ = {calls_ == 0
                  ? "wrong in a separate process, in a problem of n " + std::to_string(shape.n) + ", k " +
                        std::to_string(shape.k) + ": " + text(*mismatch)
                  : "wrong 256 calls after a problem of as many rows and another k (n " +
                        std::to_string(shape.n) + ", k " + std::to_string(shape.k) + " instead of " +
                        std::to_string(other.k) + "): uses what it kept from that call; " + text(*mismatch),
              mismatch};
    return false;
  }

  bool call_small(size_t calls) {
    for (size_t done = 0; done < calls; done += kCopies)
      if (!call_copies(std::min(kCopies, calls - done))) return false;
    return true;
  }

  bool call_copies(size_t count) {
    std::vector<qcts_problem> problems;
    for (size_t i = 0; i < count; ++i)
      problems.push_back(copies_[i].poisoned(calls_ % 2 == 0 ? Poison::zeros : Poison::nan));
    provider_run_batch(kernel_, problems, [] {});
    for (size_t i = 0; i < count; ++i)
      if (!is_right(copies_[i].answer(), ++calls_)) return false;
    if (calls_ / kCallsApart > seen_.size()) seen_.push_back(provider_footprint(kernel_));
    return true;
  }

  bool is_right(const KernelAnswer& answer, size_t call) {
    if (first_ && is_same(*first_, answer)) return true;
    const std::string which = "call " + std::to_string(call) + " of a process";
    if (const std::optional<Mismatch> mismatch = small_.judge(answer)) {
      fault_ = {"wrong in " + which + (first_ ? " and right in the ones before: " : ": ") + text(*mismatch),
                mismatch};
      return false;
    }
    if (first_ && (kernel_.claims & QCTS_CLAIM_DETERMINISTIC) != 0 && differs(answer)) {
      fault_ = {"claims to be deterministic, but the answer of " + which + " differs from that of the first",
                {}};
      return false;
    }
    if (!first_) first_ = answer;
    return true;
  }

  // Any NaN equals any other.
  bool differs(const KernelAnswer& answer) const {
    return !compare_bitwise(small_.input().y_type(), first_->y, answer.y).equal();
  }

  static std::string text(const Mismatch& mismatch) {
    return mismatch.where + ": want " + mismatch.want + ", got " + mismatch.got;
  }

  // A heap grows by pages, and a cache fills, so what each span adds has to show in longer ones too.
  uint64_t kept_bytes() {
    const auto least_added = [](std::span<const std::optional<Footprint>> seen) {
      uint64_t least = ~uint64_t{0};
      for (size_t i = 1; i < seen.size(); ++i) {
        if (!seen[i - 1] || !seen[i]) return uint64_t{0};
        const uint64_t before = seen[i - 1]->private_bytes, now = seen[i]->private_bytes;
        least = std::min(least, now - std::min(before, now));
      }
      return seen.size() < 2 ? uint64_t{0} : least;
    };
    if (least_added(seen_) < kLeastBytes) return 0;
    const std::vector<qcts_problem> problems = repeated(kSureCalls);
    std::array<std::optional<Footprint>, 4> sure;
    for (auto& footprint : sure) {
      provider_run_batch(kernel_, problems, [] {});
      footprint = provider_footprint(kernel_);
    }
    const uint64_t kept = least_added(sure);
    return kept >= kSureCalls * kBytesACall ? kept : 0;
  }

  const Case& case_;
  const JudgeContext& context_;
  const qcts_kernel& kernel_;
  const JudgedProblem small_;
  std::deque<KernelRun> copies_;
  std::deque<Larger> larger_, apart_;
  std::optional<KernelAnswer> first_;
  std::vector<std::optional<Footprint>> seen_;
  size_t calls_ = 0;
  std::optional<FaultOfCalls> fault_;
};

}  // namespace

bool asks_many_calls(const Case& c, const JudgeContext& context) {
  const bool is_quick = context.costly_share > 1;
  return is_dealt(c, is_quick ? 64 : 16, is_quick ? 8 : 32);
}

std::optional<FaultOfCalls> fault_of_many_calls(const Case& c, const JudgeContext& context,
                                                const qcts_kernel& kernel, const KernelInput& given) {
  return ManyCalls(c, context, kernel, given).run();
}

}  // namespace qcts
