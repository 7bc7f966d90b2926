// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/workers/provider_worker.h"

#include <map>
#include <stdexcept>
#include <utility>

#include "suites/base/memory.h"

namespace qcts {

ProviderWorker::ProviderWorker(const std::string& provider, JudgeSettings settings,
                               std::vector<std::filesystem::path> fixtures) {
  settings.scratch = scratch_.path();
  settings.targets = targets_folder();
  WorkerOptions options;
  options.provider = provider;
  options.settings = std::move(settings);
  options.fixtures = std::move(fixtures);
  options.memory_limit_bytes = kDefaultMemoryLimitBytes;
  slots_.push_back({std::move(options), provider, scratch_.path(), {}, nullptr});
  start_workers(slots_, 120);
  const WorkerReady& ready = slots_.front().ready;
  if (!ready.error.empty()) throw std::runtime_error(ready.error);
  offers_ = ready.offers;
}

AskSupport ProviderWorker::support(double timeout_s) {
  return [this, timeout_s](std::span<const SupportQuestion> questions) {
    return ask_support(slots_.front(), questions, timeout_s);
  };
}

void ProviderWorker::ask(const std::vector<Task>& tasks, const std::function<void(Verdict)>& on_verdict) {
  judge_tasks(
      slots_, tasks, 1,
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

std::vector<Verdict> ProviderWorker::ask_for_shares(const std::vector<KernelInput>& inputs,
                                                    const Offer& offer, double timeout_s) {
  std::vector<Task> tasks;
  std::map<std::string, size_t> places;
  for (const KernelInput& input : inputs) {
    Case asked;
    asked.id = {Kind::numerics, input.op, std::string(input.scheme->name()),
                "input_" + std::to_string(tasks.size())};
    places[asked.id.input] = tasks.size();
    auto key = replay_key({input, 0, asked.id, offer.provider + "_" + offer.variant}, offer.variant);
    key["shares"] = true;
    tasks.push_back({0, {asked.id, full_id(asked, offer), offer.variant}, key.dump(), timeout_s});
  }
  std::vector<Verdict> verdicts(inputs.size());
  ask(tasks, [&](Verdict verdict) {
    const size_t place = places.at(verdict.case_id.input);
    verdicts[place] = std::move(verdict);
  });
  const std::string& error = slots_.front().ready.error;
  if (!error.empty()) throw std::runtime_error(error);
  return verdicts;
}

}  // namespace qcts
