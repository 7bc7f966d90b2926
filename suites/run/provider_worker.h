// SPDX-License-Identifier: BSD-3-Clause
// One provider in worker processes of its own, for commands that ask one provider alone. Its code never runs
// in this process: what it does to its worker (death, silence, nonsense) becomes a verdict, and the next
// question gets a fresh worker.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "suites/base/paths.h"
#include "suites/judge/replay.h"
#include "suites/run/supervisor.h"

namespace qcts {

class ProviderWorker {
 public:
  // `provider`: as located_provider() gives it. `context`: of its judgements; scratch and targets are filled
  // in here. Throws std::runtime_error with the worker's reason where the provider cannot be judged.
  ProviderWorker(const std::string& provider, JudgeContext context);

  const std::vector<Offer>& offers() const { return offers_; }  // best first within an (op, family)

  // The verdicts of `tasks`, in order, by one worker.
  void ask(const std::vector<Task>& tasks, const std::function<void(Verdict)>& on_verdict);

  // What the kernel behind `offer` makes of the replay. Throws std::runtime_error where no worker can be
  // started any more.
  Verdict ask(const Replay& replay, const Offer& offer, double timeout_s);

 private:
  ScratchFolder scratch_;
  std::vector<Source> sources_;
  Supervisor supervisor_{sources_};
  std::vector<Offer> offers_;
};

}  // namespace qcts
