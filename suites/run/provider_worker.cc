// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/provider_worker.h"

#include <stdexcept>
#include <utility>

#include "suites/run/run.h"

namespace qcts {

ProviderWorker::ProviderWorker(const std::string& provider, JudgeContext context) {
  context.scratch = scratch_.path();
  context.targets = targets_folder();
  WorkerOptions options;
  options.provider = provider;
  options.context = std::move(context);
  options.memory_limit_bytes = kDefaultMemoryLimitBytes;
  sources_.push_back({std::move(options), provider, scratch_.path(), {}, nullptr});
  supervisor_.greet(120);
  const Hello& hello = sources_.front().hello;
  if (!hello.error.empty()) throw std::runtime_error(hello.error);
  offers_ = hello.provider == "builtin" ? builtin_offers() : hello.offers;
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
      sources_.front().hello.error;  // otherwise a failure to load would look like a crash
  if (!error.empty()) throw std::runtime_error(error);
  return answer;
}

}  // namespace qcts
