// SPDX-License-Identifier: BSD-3-Clause
// Does the judge accuse the innocent? Providers that are right, judged on many seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/verdict.h"

namespace qcts::selftest {

struct AlarmRequest {
  // "builtin", "reference" (every scheme), or the path of a shared library
  std::vector<std::string> providers = {"builtin"};
  std::string plan = "seeds";
  uint64_t first = 1, seeds = 200;  // from first to seeds
};

// What one implementation was told.
struct AlarmRow {
  std::string implementation;  // "builtin_avx2"
  uint64_t judged = 0, passed = 0;
  std::vector<Verdict> alarms;  // neither pass nor not_supported; "crash" where the worker died
};

// Judges the plan's synthetic numerics and determinism cases in a worker, once a seed. A case that ends its
// worker is an alarm. Throws RunError for a plan or provider that is not there, std::runtime_error for one
// that cannot be loaded. `on_seed` is told how many seeds are done.
std::vector<AlarmRow> alarms(const AlarmRequest& request, const std::function<void(uint64_t)>& on_seed);

}  // namespace qcts::selftest
