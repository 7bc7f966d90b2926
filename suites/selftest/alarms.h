// SPDX-License-Identifier: BSD-3-Clause
// Measures false alarms: judges correct providers on many seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/verdict.h"

namespace qcts::selftest {

struct AlarmRequest {
  // "builtin", "reference" (every scheme), or the path of a shared library.
  std::vector<std::string> providers = {"builtin"};
  std::string plan = "seeds";
  uint64_t first = 1, seeds = 200;  // seeds from `first` to `seeds`
};

// The results of one implementation.
struct AlarmRow {
  std::string implementation;  // "builtin_avx2"
  uint64_t judged = 0, passed = 0;
  std::vector<Verdict> alarms;  // verdicts other than pass and not_supported; "crash" if the worker died
};

// Judges the plan's synthetic numerics and determinism cases in a worker, once per seed.
// A case that ends its worker is an alarm. Calls `on_seed` with the number of finished seeds.
// Throws RunError if the plan or a provider does not exist.
// Throws std::runtime_error if a provider cannot be loaded.
std::vector<AlarmRow> alarms(const AlarmRequest& request, const std::function<void(uint64_t)>& on_seed);

}  // namespace qcts::selftest
