// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/numerics/no_rows.h"

#include <string>

#include "suites/judge/first_answer.h"

namespace qcts {
namespace {

// A thread count that no row can be divided by.
constexpr uint32_t kThreadsWithoutRows = 3;

void fail_without_rows(Verdict& verdict, std::string reason) {
  verdict.status = Status::fail;
  verdict.reason = std::move(reason);
}

// Returns the reason why a host that loads the weight with m = 1 cannot use it for m = 0, or "".
std::string sizes_differ(const qcts_kernel& kernel, const KernelInput& input, KernelRun& without_rows) {
  KernelInput one_row = input;
  one_row.m = 1;
  one_row.x.resize(static_cast<size_t>(input.weight.k) * dtype_bytes(input.x_dtype));
  const KernelRun run(kernel, one_row, {});
  if (run.supports().status != QCTS_OK) return "";
  const uint64_t of_none = provider_prepared_bytes(kernel, without_rows.problem()),
                 of_one = provider_prepared_bytes(kernel, run.problem());
  if (of_none != of_one)
    return "prepared_bytes() is " + std::to_string(of_none) + " for m = 0 and " + std::to_string(of_one) +
           " for m = 1: want the same";
  const uint64_t work_of_none = provider_workspace_bytes(kernel, without_rows.problem()),
                 work_of_one = provider_workspace_bytes(kernel, run.problem());
  if (work_of_none <= work_of_one) return "";
  return "workspace_bytes() is " + std::to_string(work_of_none) + " for m = 0 and " +
         std::to_string(work_of_one) + " for m = 1: want no more";
}

std::string options_text(const RunOptions& options) {
  return std::string(options.empty_has_address ? "addresses of painted bytes" : "NULL") +
         " for x, y and planes of rows, " + std::to_string(options.threads) +
         (options.threads == 1 ? " thread" : " threads");
}

bool runs(const qcts_kernel& kernel, const KernelInput& input, const RunOptions& options, Verdict& verdict) {
  KernelRun run(kernel, input, options);
  if (run.supports().status != QCTS_OK) return true;
  for (const Poison poison : {Poison::nan, Poison::zeros}) {
    const qcts_status status = run.attempt(poison);
    if (status == QCTS_OK) continue;
    fail_without_rows(verdict, "run() returned " + std::to_string(static_cast<int>(status)) +
                                   " without rows of x: want QCTS_OK" +
                                   (status == QCTS_FAILED ? provider_failure(kernel) : "") + "; " +
                                   options_text(options));
    return false;
  }
  return true;
}

}  // namespace

void judge_without_rows(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads,
                        Verdict& verdict) {
  KernelRun first(kernel, input, {threads, 0, 0});
  if (is_declined(first.supports(), verdict)) return;
  if (const Support early = first.supports_before_data(); early.status != QCTS_OK)
    return fail_without_rows(verdict,
                             "supports() declines with NULL pointers what it accepts later: " + early.reason);
  if (std::string reason = sizes_differ(kernel, input, first); !reason.empty())
    return fail_without_rows(verdict, std::move(reason));
  for (const bool has_address : {false, true})
    for (const uint32_t count : {threads, kThreadsWithoutRows})
      if (!runs(kernel, input, {.threads = count, .empty_has_address = has_address}, verdict)) return;
  if (!runs(kernel, input,
            {.threads = threads, .misalign_elems = 1, .planes_reversed = true, .empty_has_address = true},
            verdict))
    return;
  verdict.status = Status::pass;
  if (!first.notices_writes_without_rows())
    verdict.findings.push_back(
        {Caveat::unnoticed_change, "a write through x, y or a plane of rows would have passed too"});
}

}  // namespace qcts
