// SPDX-License-Identifier: BSD-3-Clause
// qcts run --identify: which option do a provider's kernels follow?
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"

namespace qcts::cli {

struct IdentifyRequest {
  std::string provider;              // as --provider names it
  std::vector<std::string> schemes;  // names, families or patterns; empty: all
  std::string variant;               // "": all
  double timeout_s = 60;
  uint32_t threads = 1;
  bool json = false;
};

// Asks every kernel and prints what it computes.
// Returns failed if a kernel computes an option other than the one it was asked for, or none, and
// nothing_proved if none answered. Throws UsageError and std::runtime_error.
Outcome identify(const IdentifyRequest& request);

}  // namespace qcts::cli
