// SPDX-License-Identifier: BSD-3-Clause
// Turns rows of device kernels (kernels/kernels.inc) into rows that run in the executor, one problem at a
// time. Each run of a problem follows the next schedule. QCTS_SCHEDULE=0 .. 3 in the environment chooses one
// schedule for all runs.
#pragma once

#include <mutex>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::simt {

// Returns why the executor cannot run kernels of the variant where the problem is, or NULL. On a device, that
// is the fake one of kernels/fakecuda, whose streams then run the launches.
const char* executor_refusal(const char* variant, const qcts_problem& problem);
qcts_status run_row(const qcts_kernel& source, const qcts_problem& problem);
qcts_status prepare_row(const qcts_kernel& source, const qcts_problem& problem, void* prepared);
// Writes to `why` why the calling thread's last run failed, and under which schedule.
void failure_of_row(char* why, size_t why_size);
// The executor's state is global: whoever configures and launches holds this.
std::mutex& executor_mutex();
// From now on, runs have the checks of simt_checks.h. They count accesses if QCTS_COUNT_ACCESSES is set.
void check_rows();

// Returns the row of kSource, changed so that it runs in the executor.
template <const qcts_kernel& kSource>
qcts_kernel executed_row(const char* description) {
  qcts_kernel row = kSource;
  row.description = description;
  row.claims |= QCTS_CLAIM_EMULATED | QCTS_CLAIM_SCHEDULES | QCTS_CLAIM_CAPTURABLE;
  row.run = [](const qcts_problem* problem) { return run_row(kSource, *problem); };
  if (row.prepare != nullptr)
    row.prepare = [](const qcts_problem* problem, void* prepared) {
      return prepare_row(kSource, *problem, prepared);
    };
  row.failure = failure_of_row;
  return row;
}

}  // namespace qcts::simt
