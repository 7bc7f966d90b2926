// SPDX-License-Identifier: BSD-3-Clause
// The parts of the judge that an exam tests, as values, so that a faulty part can replace any of them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/report.h"
#include "reports/waivers.h"
#include "suites/cases/selection/selection.h"
#include "suites/judge/expected/compare.h"
#include "suites/providers/memory/arena.h"
#include "suites/run/merge.h"
#include "suites/timing/interleaved_timer.h"
#include "suites/timing/stats.h"

namespace qcts::selftest {

struct Parts {
  using Bytes = std::span<const std::byte>;

  // comparator
  std::function<Comparison(DType, Bytes, Bytes)> bitwise = compare_bitwise;
  std::function<BoundedComparison(std::span<const Bounded>, DType, Bytes)> bounded = compare_bounded;
  std::function<std::optional<Mismatch>(const Scheme&, const WeightShape&, Layout, const Planes&,
                                        const Planes&)>
      planes = compare_planes;
  std::function<std::optional<std::string>(const GuardedBuffer&)> violation = &GuardedBuffer::violation;

  // runner
  std::function<std::vector<Candidate>(const Selection&, std::vector<Candidate>)> select = qcts::select;
  std::function<Conformance(const RunReport&)> conformance = qcts::conformance;
  std::function<int(const Conformance&, const RunReport&)> exit_status =
      [](const Conformance& result, const RunReport&) { return static_cast<int>(result.outcome); };
  std::function<void(std::vector<Waiver>&, Verdict&)> waive = apply_waivers;

  // merge
  std::function<void(const std::vector<MergePart>&)> join = check_parts;

  // bench
  std::function<double(std::span<const double>)> median = qcts::median;
  std::function<Interval(std::span<const double>, std::span<const double>, size_t, double, uint64_t)> ratio =
      ratio_interval;
  std::function<Decision(const Interval&, double)> at_least = decide_at_least;
  std::function<void(std::vector<Series>&, double, uint64_t)> time = time_rounds;
};

// Returns the real parts with the fault of `mutant`, whose kind must be comparator, runner, merge or bench.
// Throws std::invalid_argument for other mutants.
Parts mutated_parts(std::string_view mutant);

struct Question {
  std::string_view name;  // "comparator.nan_within_a_bound"
  std::string_view what;  // the meaning of a wrong answer
  bool (*holds)(const Parts& parts);
};
std::span<const Question> comparator_questions();
std::span<const Question> runner_questions();
std::span<const Question> merge_questions();
std::span<const Question> bench_questions();

}  // namespace qcts::selftest
