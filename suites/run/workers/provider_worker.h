// SPDX-License-Identifier: BSD-3-Clause
// Runs one provider in worker processes, for commands that use a single provider.
// The provider's code never runs in this process.
// If a worker dies, hangs or writes nonsense, this becomes a verdict, and the next case gets a fresh worker.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "suites/base/paths.h"
#include "suites/judge/replay.h"
#include "suites/run/workers/supervisor.h"

namespace qcts {

class ProviderWorker {
 public:
  // `provider` is the result of located_provider().
  // The constructor fills in scratch and targets of `settings`.
  // `fixtures` are the folders whose files the tasks name.
  // Throws std::runtime_error with the worker's reason if the provider cannot be judged.
  ProviderWorker(const std::string& provider, JudgeSettings settings,
                 std::vector<std::filesystem::path> fixtures = {});

  // Returns the provider's offers. Within an (op, family), the best comes first.
  const std::vector<Offer>& offers() const { return offers_; }

  // Returns a function that asks the provider's kernels. This object must outlive the result.
  AskSupport support(double timeout_s);

  // Judges `tasks` in order with one worker and passes each verdict on.
  void ask(const std::vector<Task>& tasks, const std::function<void(Verdict)>& on_verdict);

  // Returns the verdict of the offer's kernel on the replay.
  // Throws std::runtime_error if no further worker can be started.
  Verdict ask(const Replay& replay, const Offer& offer, double timeout_s);

  // Asks the offer's kernel once on each input, and returns one verdict per input, as ask_for_shares() gives
  // it. The inputs have one op, scheme and policy.
  // Throws std::runtime_error if no further worker can be started.
  std::vector<Verdict> ask_for_shares(const std::vector<KernelInput>& inputs, const Offer& offer,
                                      double timeout_s);

 private:
  ScratchFolder scratch_;
  std::vector<ProviderSlot> slots_;
  std::vector<Offer> offers_;
};

}  // namespace qcts
