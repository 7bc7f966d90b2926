// SPDX-License-Identifier: BSD-3-Clause
// Hidden subcommands that `qcts run` starts: one process per provider, and another if the provider is a
// program.
#include <memory>

#include "suites/base/process.h"
#include "suites/cli/commands.h"
#include "suites/providers/remote_provider.h"
#include "suites/run/workers/worker.h"

namespace qcts::cli {

void add_worker(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("worker", "judge cases for `qcts run`");
  command->group("");
  command->callback([&exit_code] { exit_code = run_worker(kAnswerFd); });
}

void add_provider_process(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string program;
    bool free = false;
    CageRequest cage;
    uint64_t memory_limit_bytes = 0;
  };
  auto words = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("provider-process", "become the program of a provider");
  command->group("");
  command->add_option("program", words->program)->required();
  command->add_option("--scratch", words->cage.scratch)->required();
  command->add_option("--covered", words->cage.covered)->allow_extra_args(false);
  command->add_flag("--free,!--caged", words->free);
  command->add_option("--memory-limit-bytes", words->memory_limit_bytes);
  command->callback([words, &exit_code] {
    words->cage.is_wanted = !words->free;
    exit_code = become_provider(words->program, words->cage, words->memory_limit_bytes);
  });
}

}  // namespace qcts::cli
