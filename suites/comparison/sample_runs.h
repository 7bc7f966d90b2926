// SPDX-License-Identifier: BSD-3-Clause
// Makes runs for the tests of this folder.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "reference/numerics/noise.h"
#include "suites/comparison/recorded_run.h"

namespace qcts {

inline CaseState sample_case(const std::string& id, Status status = Status::pass) {
  return {id, status, status == Status::pass ? "" : "a reason", {}, {}};
}

// Returns a latency case whose interval is half a percent wide on either side of `us`. Its roof takes 80 us.
inline CaseState timed_case(const std::string& id, double us, bool trusted = true) {
  CaseState state = sample_case(id);
  const auto around = [](double value) { return Interval{value, value / 1.005, value * 1.005, 200}; };
  state.pace = Pace{around(us), around(us / 80), trusted};
  return state;
}

inline RecordedRun sample_run(std::vector<CaseState> cases,
                              const std::string& started = "2026-01-01T00:00:00Z") {
  RecordedRun run;
  run.name = "run of " + started;
  run.head.plan = "nightly";
  run.head.started_utc = started;
  run.head.suite_commit = "abc";
  run.head.cases = run.head.all_cases = cases.size();
  run.head.environment = {{"cpu_model", "Test"}, {"cpu_family", 25}, {"features", {"avx2", "fma"}}};
  run.head.providers = nlohmann::ordered_json::array(
      {{{"name", "builtin"}, {"version", "1"}, {"sha256", "00"}, {"implementations", {{"op", "linear"}}}}});
  run.cases = std::move(cases);
  return run;
}

// Returns eight latency cases of 100 us, each with noise of a third of a percent.
inline std::vector<CaseState> eight_timed_cases(uint64_t seed) {
  std::vector<CaseState> cases;
  for (uint64_t i = 0; i < 8; ++i)
    cases.push_back(timed_case("latency.linear/int8_row/case" + std::to_string(i) + "/builtin_avx2",
                               100 * std::exp(0.003 * noise(seed, i))));
  return cases;
}

}  // namespace qcts
