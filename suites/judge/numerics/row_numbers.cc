// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/numerics/row_numbers.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "suites/inputs/input_shapes.h"
#include "suites/judge/determinism/fresh_process.h"
#include "suites/judge/expected/judged_problem.h"
#include "suites/providers/hosted_provider.h"

namespace qcts {
namespace {

constexpr int64_t kLeastRows = 1000, kLeastWeight = 16384;
constexpr int64_t kOddRows = 33;  // not a divisor of 2^16, so that the row 65,536 earlier is a different one

bool asks_row_numbers(const Case& c, const JudgeContext& context, const KernelInput& input) {
  constexpr int64_t kFewSchemes = 32;
  if (c.synthetic() == nullptr || input.op != Op::linear) return false;
  const Synthetic& asked = *c.synthetic();
  const bool has_rows = asked.generator == Generator::batches
                            ? input.m >= kLeastRows
                            : asked.generator == Generator::rows && input.m == kOddRows;
  return has_rows && input.weight.n * input.weight.k >= kLeastWeight && context.costly_share == 1 &&
         HostedProvider::kernel_of(*c.implementation->kernel) != nullptr && schemes_served(c) <= kFewSchemes;
}

// Repeats the rows of x.
KernelInput with_rows(const KernelInput& input, int64_t rows) {
  KernelInput repeated = input;
  const size_t row_bytes = input.x.size() / static_cast<size_t>(input.m);
  repeated.m = rows;
  repeated.x.resize(row_bytes * static_cast<size_t>(rows));
  for (size_t at = 0; at < repeated.x.size(); at += input.x.size())
    std::copy_n(input.x.begin(), std::min(input.x.size(), repeated.x.size() - at),
                repeated.x.begin() + static_cast<ptrdiff_t>(at));
  return repeated;
}

}  // namespace

void judge_row_numbers(const Case& c, const JudgeContext& context, const KernelInput& input,
                       Verdict& verdict) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kMostTime = std::chrono::seconds(12);  // of a kernel that is slow, but right
  if (!asks_row_numbers(c, context, input)) return;
  const qcts_kernel& kernel = *c.implementation->kernel;
  const JudgedProblem few(test_vector_for(input), kernel);
  KernelRun of_few(kernel, input, {.threads = context.threads});
  if (of_few.supports().status != QCTS_OK) return;
  of_few.prepare();
  const auto began = Clock::now();
  const KernelAnswer right = of_few.run(Poison::nan);
  if ((Clock::now() - began) * (kManyRows / input.m + 1) > kMostTime) return;
  KernelRun run(kernel, with_rows(input, kManyRows), {.threads = context.threads});
  if (run.supports().status != QCTS_OK) return;
  const KernelAnswer answer = run.run(Poison::nan);
  const auto row_bytes = static_cast<ptrdiff_t>(right.y.size() / static_cast<size_t>(input.m));
  for (int64_t first = 0; first < kManyRows; first += input.m) {
    const int64_t rows = std::min(input.m, kManyRows - first);
    KernelAnswer part = right;  // whose last rows stand for those that are not there
    std::copy_n(answer.y.begin() + first * row_bytes, rows * row_bytes, part.y.begin());
    verdict.mismatch = few.judge(part);
    if (!verdict.mismatch) continue;
    verdict.status = Status::fail;
    verdict.reason = "right with " + std::to_string(input.m) + " rows of x, wrong with " +
                     std::to_string(kManyRows) + " that repeat them: in the rows from " +
                     std::to_string(first) + " on, " + verdict.mismatch->where + " of them: want " +
                     verdict.mismatch->want + ", got " + verdict.mismatch->got;
    return;
  }
}

}  // namespace qcts
