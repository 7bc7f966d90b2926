// SPDX-License-Identifier: BSD-3-Clause
// Hidden subcommands that `qcts run` starts: one process per provider, and another if the provider is a
// program.
#include <memory>

#include "suites/base/process.h"
#include "suites/cli/commands.h"
#include "suites/providers/remote_provider.h"
#include "suites/run/worker.h"

namespace qcts::cli {

void add_worker(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<WorkerOptions>();
  CLI::App* command = app.add_subcommand("worker", "judge cases for `qcts run`");
  command->group("");
  command->add_option("--provider", options->provider)->required();
  command->add_option("--fixtures", options->fixtures);
  command->add_flag_callback("--fixtures-known", [options] { options->fixture_files = Files::known; });
  command->add_option("--scratch", options->context.scratch)->required();
  command->add_option("--targets", options->context.targets)->required();
  command->add_option("--program", options->context.program)->required();
  command->add_option("--rerun-options", options->context.rerun_options);
  command->add_option("--threads", options->context.threads);
  command->add_option("--seed", options->context.seed);
  command->add_option("--latency-budget", options->context.latency_budget_s);
  command->add_option("--memory-limit-bytes", options->memory_limit_bytes);
  command->add_flag("--gate-latency", options->context.gate_latency);
  command->add_flag("--peer", options->context.is_peer);
  command->add_flag_callback("--no-diagnosis", [options] { options->context.diagnose = false; });
  command->callback([options, &exit_code] { exit_code = run_worker(*options, kAnswerFd); });
}

void add_provider_process(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string program;
    uint64_t memory_limit_bytes = 0;
  };
  auto words = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("provider-process", "become the program of a provider");
  command->group("");
  command->add_option("program", words->program)->required();
  command->add_option("--memory-limit-bytes", words->memory_limit_bytes);
  command->callback(
      [words, &exit_code] { exit_code = become_provider(words->program, words->memory_limit_bytes); });
}

}  // namespace qcts::cli
