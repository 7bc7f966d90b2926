// SPDX-License-Identifier: BSD-3-Clause
// Tests that a worker gets every setting of the run, and that a line without one is refused.
#include <gtest/gtest.h>

#include "suites/run/workers/worker.h"

namespace qcts {
namespace {

WorkerOptions every_option() {
  WorkerOptions options;
  options.provider = "/lib/vendor \"x\".so";
  options.fixtures = {"/a b", "/c"};
  options.fixture_files = Files::known;
  options.memory_limit_bytes = uint64_t{5} << 30;
  JudgeSettings& settings = options.settings;
  settings.scratch = "/tmp/s";
  settings.targets = "/t";
  settings.program = "bin/qcts";
  options.isolation = Isolation::best;
  settings.rerun_options = "--plan quick --seed 7";
  settings.threads = 3;
  settings.latency_budget_s = 0.7;
  settings.purpose = Purpose::check;
  settings.gate_latency = true;
  settings.is_peer = true;
  settings.seed = ~uint64_t{0};
  settings.is_seed_secret = true;
  settings.costly_share = 8;
  settings.diagnose = false;
  return options;
}

// Every member differs from its default, so one that is not sent would come back as the default.
TEST(WorkerOptions, ComeBackWhole) {
  const nlohmann::ordered_json sent = to_json(every_option()), defaults = to_json(WorkerOptions());
  for (const auto& [name, value] : sent["settings"].items())
    EXPECT_NE(value, defaults["settings"][name]) << name;
  EXPECT_EQ(to_json(worker_options_from_json(nlohmann::ordered_json::parse(sent.dump()))), sent);
}

TEST(WorkerOptions, MissingOnesAreRefused) {
  const nlohmann::ordered_json sent = to_json(every_option());
  for (const auto& [name, value] : sent["settings"].items()) {
    nlohmann::ordered_json less = sent;
    less["settings"].erase(name);
    EXPECT_THROW(worker_options_from_json(less), nlohmann::json::exception) << name;
  }
}

}  // namespace
}  // namespace qcts
