// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/provider_worker.h"

#include <stdexcept>
#include <utility>

#include "suites/run/run.h"

namespace qcts {

ProviderWorker::ProviderWorker(const std::string& provider, JudgeContext context,
                               std::vector<std::filesystem::path> fixtures) {
  context.scratch = scratch_.path();
  context.targets = targets_folder();
  WorkerOptions options;
  options.provider = provider;
  options.context = std::move(context);
  options.fixtures = std::move(fixtures);
  options.memory_limit_bytes = kDefaultMemoryLimitBytes;
  slots_.push_back({std::move(options), provider, scratch_.path(), {}, nullptr});
  supervisor_.handshake(120);
  const WorkerReady& ready = slots_.front().ready;
  if (!ready.error.empty()) throw std::runtime_error(ready.error);
  offers_ = ready.offers;
}

AskSupport ProviderWorker::support(double timeout_s) {
  return [this, timeout_s](std::span<const SupportQuestion> questions) {
    return supervisor_.ask_support(0, questions, timeout_s);
  };
}

void ProviderWorker::ask(const std::vector<Task>& tasks, const std::function<void(Verdict)>& on_verdict) {
  supervisor_.run(
      tasks, 1,
      [&](Verdict verdict) {
        on_verdict(std::move(verdict));
        return true;
      },
      [](const std::vector<std::string>&) { return true; });
}

Verdict ProviderWorker::ask(const Replay& replay, const Offer& offer, double timeout_s) {
  Case asked;
  asked.id = replay.case_id;
  Verdict answer;
  ask({{0,
        {asked.id, full_id(asked, offer), offer.variant},
        replay_key(replay, offer.variant).dump(),
        timeout_s}},
      [&](Verdict verdict) { answer = std::move(verdict); });
  const std::string& error =
      slots_.front().ready.error;  // otherwise a failure to load would look like a crash
  if (!error.empty()) throw std::runtime_error(error);
  return answer;
}

}  // namespace qcts
