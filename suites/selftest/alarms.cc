// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/alarms.h"

#include <map>

#include "suites/base/paths.h"
#include "suites/cases/case_key.h"
#include "suites/cases/expand.h"
#include "suites/cases/named.h"
#include "suites/providers/reference_provider.h"
#include "suites/run/workers/provider_worker.h"

namespace qcts::selftest {
namespace {

// Returns the plan's synthetic cases as lines for a worker, without a seed.
struct Asked {
  Task task;
  nlohmann::ordered_json key;
};

std::vector<Asked> asked_of(const Plan& plan, ProviderWorker& worker, bool with_reference) {
  OfferTable offers;
  offers.add(worker.offers());
  std::vector<Asked> all;
  for (const OfferedCase& each :
       expand_offered(plan, {{}, {}, with_reference}, offers, worker.support(plan.case_timeout_s)))
    if (each.asked.synthetic() != nullptr)
      all.push_back({{0, {each.asked.id, each.full_id, each.offer->variant}, "", plan.case_timeout_s},
                     case_key(each.asked, each.offer->variant)});
  return all;
}

std::vector<AlarmRow> alarms_of(const std::string& given, const AlarmRequest& request,
                                const std::function<void(uint64_t)>& on_seed) {
  const std::string provider = located_provider(given);
  const Plan plan = named_plan(request.plan);
  JudgeSettings settings;
  settings.program = program_word();
  ProviderWorker worker(provider, settings);
  const bool reference = provider == kReferenceProvider;
  std::vector<Asked> asked = asked_of(plan, worker, reference);
  std::map<std::string, AlarmRow> rows;
  for (uint64_t seed = request.first; seed <= request.seeds; ++seed) {
    settings.rerun_options = "--plan " + request.plan + " --seed " + std::to_string(seed);
    if (given != "builtin" && !reference) settings.rerun_options += " --provider " + shell_word(given);
    std::vector<Task> tasks;
    for (Asked& each : asked) {
      each.key["seed"] = seed;
      each.task.key = each.key.dump();
      tasks.push_back(each.task);
    }
    worker.ask(tasks, [&](Verdict verdict) {
      if (verdict.status == Status::not_supported || verdict.status == Status::robustness) return;
      AlarmRow& row = rows[verdict.provider + "_" + verdict.variant];
      ++row.judged;
      if (verdict.status == Status::pass) {
        ++row.passed;
        return;
      }
      verdict.rerun = rerun_line(settings, verdict.full_id());
      row.alarms.push_back(std::move(verdict));
    });
    on_seed(seed);
  }
  std::vector<AlarmRow> list;
  for (auto& [name, row] : rows) {
    row.implementation = name;
    list.push_back(std::move(row));
  }
  return list;
}

}  // namespace

std::vector<AlarmRow> alarms(const AlarmRequest& request, const std::function<void(uint64_t)>& on_seed) {
  std::vector<AlarmRow> all;
  for (const std::string& provider : request.providers)
    for (AlarmRow& row : alarms_of(provider, request, on_seed)) all.push_back(std::move(row));
  return all;
}

}  // namespace qcts::selftest
