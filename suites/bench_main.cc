// SPDX-License-Identifier: BSD-3-Clause
// qcts_bench: runs every latency case of the latency plan but the decoder blocks as a Google Benchmark of the
// same id, with that library's flags and output. Each kernel is verified on the benchmark's problem before it
// is timed. For verdicts use `qcts run`. Exit codes: 0 done, 1 a kernel was wrong, 2 usage, 3 no benchmark
// matches, 5 infrastructure.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include <benchmark/benchmark.h>

#include "fixtures/golden.h"
#include "kernels/machine/machine.h"
#include "suites/base/paths.h"
#include "suites/cases/expand.h"
#include "suites/host/probes.h"
#include "suites/judge/latency/latency_case.h"
#include "suites/providers/host_registry.h"
#include "suites/providers/provider_call.h"

namespace qcts {
namespace {

constexpr const char* kPlan = "latency";
constexpr uint32_t kThreads = 1;

void time_case(benchmark::State& state, const Case& c, bool& wrong) {
  try {
    VerifiedKernel kernel(c, c.synthetic()->seed, kThreads);
    const Support support = kernel.supports();
    if (support.status != QCTS_OK) return state.SkipWithError(("not supported: " + support.reason).c_str());
    TimedKernel& timed = kernel.timed();
    timed.query_prepared_bytes();
    const size_t copies = c.is_warm() ? 1
                                      : cold_copies(timed.copied_bytes(), timed.held_bytes(),
                                                    machine().l3_bytes, copy_budget_bytes());
    const std::string error = kernel.make_and_verify(copies);
    if (!error.empty()) {
      wrong = true;
      return state.SkipWithError(("not timed: wrong answer: " + error).c_str());
    }
    // Each batch is timed by this process's clock, and its outputs are checked before the next.
    kernel.check_batches();
    size_t copy = 0;
    const double first_us = timed.time_us(0, 1, true);
    const size_t calls = std::clamp<size_t>(
        static_cast<size_t>(timed.good_sample_us() / std::max(first_us, 0.01)), 1, timed.max_calls(true));
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(calls))) {
      const double us = timed.time_us(copy, calls, true);
      state.SetIterationTime(us * static_cast<double>(calls) * 1e-6);
      copy = (copy + calls) % copies;
    }
    kernel.finish_batches();
    state.SetBytesProcessed(static_cast<int64_t>(timed.moved_bytes()) *
                            static_cast<int64_t>(state.iterations()));
    state.counters["copies"] = static_cast<double>(copies);
  } catch (const HostFailure& failure) {
    wrong = true;
    state.SkipWithError(failure.reason.c_str());
  } catch (const std::exception& error) {
    wrong = true;
    state.SkipWithError(error.what());
  }
}

// Anchors an exact id, so that it matches only itself: the regular expression m1_n4096 also matches
// m1_n40961.
std::string anchored(const std::string& filter, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    if (filter != c.id.text() && filter != c.full_id()) continue;
    std::string escaped;
    for (const char letter : filter) escaped += letter == '.' ? "\\." : std::string(1, letter);
    return "^" + escaped + (filter == c.id.text() ? "/[^/]+" : "") + "(/manual_time)?$";
  }
  return filter;
}

// A plug-in that cannot be loaded is reported and skipped.
void add_plugins(HostRegistry& hosts) {
  for (const std::filesystem::path& library : discovered_plugins()) {
    try {
      const std::string& change = hosts.add(library.string()).load_fault();
      if (!change.empty())
        std::fprintf(stderr, "qcts_bench: loading %s changed the floating-point control state: %s\n",
                     library.c_str(), change.c_str());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "qcts_bench: plug-in skipped: %s\n", error.what());
    }
  }
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc > 1)
    throw std::invalid_argument(std::string("unknown option '") + argv[1] +
                                "' (--help lists Google Benchmark's)");
  const ScratchFolder scratch;
  hide_from_others();
  HostRegistry hosts({true, scratch.path(), {}}, 0);
  hosts.add("builtin");
  add_plugins(hosts);
  const Plan plan = load_plan(plan_path(kPlan));
  std::vector<Case> cases;
  for (Case& c : expand(plan, {{}, {}, &hosts.registry()}))
    if (c.id.kind == Kind::latency && !c.is_block()) cases.push_back(std::move(c));
  bool wrong = false;
  for (const Case& c : cases)
    benchmark::RegisterBenchmark(c.full_id().c_str(),
                                 [&c, &wrong](benchmark::State& state) { time_case(state, c, wrong); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  benchmark::AddCustomContext(
      "qcts_note",
      "Debian builds its libbenchmark without NDEBUG, hence \"library was built as DEBUG\"; qcts and its "
      "kernels are built as the preset says");
  benchmark::SetBenchmarkFilter(anchored(benchmark::GetBenchmarkFilter(), cases));
  if (benchmark::RunSpecifiedBenchmarks() == 0) {
    std::fprintf(stderr, "qcts_bench: no benchmark matches --benchmark_filter\n");
    return 3;
  }
  return wrong ? 1 : 0;
}

}  // namespace
}  // namespace qcts

int main(int argc, char** argv) {
  try {
    return qcts::run(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "qcts_bench: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qcts_bench: %s\n", error.what());
    return 5;
  }
}
