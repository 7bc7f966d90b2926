// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/timer_selftest.h"

#include <cmath>
#include <stdexcept>

#include "kernels/machine/machine.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/cases/expand.h"
#include "suites/cases/named.h"
#include "suites/cases/selection/selection.h"
#include "suites/judge/latency/latency_case.h"
#include "suites/judge/latency/latency_measures.h"
#include "suites/providers/host_registry.h"
#include "suites/timing/interleaved_timer.h"

namespace qcts {
namespace {

// One run of one case.
void time_against_itself(VerifiedKernel& kernel, const TimerSelftestRequest& request, uint64_t seed,
                         TimerSelftestRow& row) {
  SlowedKernel unchanged(kernel.timed(), 0), slowed(kernel.timed(), request.planted);
  const size_t third = unchanged.copies() / 3;  // so that no target finds data that another has just read
  std::vector<Series> series = {{.name = "candidate", .target = &unchanged},
                                {.name = "again", .target = &unchanged, .next_copy = third},
                                {.name = "slowed", .target = &slowed, .next_copy = 2 * third}};
  time_rounds(series, request.budget_s, seed);
  const Interval itself = abba_interval(series[1].us, series[0].us, kLatencyConfidence, seed);
  const Interval planted = abba_interval(series[0].us, series[2].us, kLatencyConfidence, seed);
  const double truth = 1 / (1 + request.planted);
  ++row.runs;
  row.alarms += alarms(itself) ? 1 : 0;
  row.found += is_slower(planted) ? 1 : 0;
  row.itself_missed += itself.low > 1 || itself.high < 1 ? 1 : 0;
  row.planted_missed += planted.low > truth || planted.high < truth ? 1 : 0;
  row.widest = std::max(row.widest, (itself.high - itself.low) / 2);
}

std::vector<Case> timer_selftest_cases(const TimerSelftestRequest& request, const Registry& registry) {
  std::vector<Case> all = expand(named_plan(request.plan), {{}, {}, &registry}), kept;
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < all.size(); ++i)
    candidates.push_back({{all[i].id, all[i].full_id(), all[i].variant()}, 0, i});
  Selection selection;
  selection.filters = request.filters;
  for (const Candidate& candidate : select(selection, candidates))
    if (const Case& c = all[candidate.index];
        c.id.kind == Kind::latency && !c.is_block() && c.implementation != nullptr)
      kept.push_back(c);
  return kept;
}

}  // namespace

std::vector<TimerSelftestRow> run_timer_selftest(const TimerSelftestRequest& request,
                                                 const std::function<void(uint64_t)>& on_run) {
  const ScratchFolder scratch;
  HostRegistry hosts({true, scratch.path(), {}}, 0);
  hosts.add("builtin");
  std::vector<TimerSelftestRow> rows;
  std::vector<std::unique_ptr<VerifiedKernel>> kernels;
  const std::vector<Case> cases = timer_selftest_cases(request, hosts.registry());
  for (const Case& c : cases) {
    auto kernel = std::make_unique<VerifiedKernel>(c, c.synthetic()->seed, 1);
    if (kernel->supports().status != QCTS_OK) continue;
    kernel->timed().query_prepared_bytes();
    const std::string wrong =
        kernel->make_and_verify(cold_copies(kernel->timed().copied_bytes(), kernel->timed().held_bytes(),
                                            machine().l3_bytes, copy_budget_bytes()));
    if (!wrong.empty()) throw std::runtime_error(c.full_id() + ": " + wrong);
    TimerSelftestRow row;
    row.full_id = c.full_id();
    rows.push_back(row);
    kernels.push_back(std::move(kernel));
  }
  if (rows.empty())
    throw RunError(Outcome::nothing_proved, "no latency case of a builtin kernel that runs here");
  for (uint64_t run = 0; run < request.runs; ++run) {
    for (size_t i = 0; i < rows.size(); ++i) time_against_itself(*kernels[i], request, run + 1, rows[i]);
    on_run(run + 1);
  }
  return rows;
}

}  // namespace qcts
