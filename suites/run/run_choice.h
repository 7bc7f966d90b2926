// SPDX-License-Identifier: BSD-3-Clause
// The second step of a run: the cases of its plan, its selection and its shard.
#pragma once

#include <string>
#include <vector>

#include "suites/cases/candidates.h"
#include "suites/run/run_setup.h"

namespace qcts {

struct RunChoice {
  Candidates candidates;
  std::vector<Candidate> chosen;  // of this shard
  double latency_budget_s = 0;    // of a latency case whose share is 1
};

// Chooses the cases and completes setup.head. The result refers to `setup`.
// Throws RunError if a variant cannot run here.
RunChoice choose_cases(const RunRequest& request, RunSetup& setup);

// Returns why no case was selected, with the nearest id for each filter that matches nothing.
std::string why_none_is_chosen(const RunRequest& request, RunSetup& setup);

}  // namespace qcts
