#include "suites/selftest/alarms.h"

#include <map>

#include "suites/judge/judge.h"
#include "suites/judge/expected/question.h"
#include "suites/providers/reference_provider.h"
#include "suites/cases/named.h"
#include "suites/base/paths.h"
#include "suites/cases/expand.h"

namespace qcts::selftest {
namespace {

std::vector<AlarmRow> alarms_of(const std::string& provider, const AlarmRequest& request,
                                const std::function<void(uint64_t)>& on_seed) {
  Registry registry;
  const bool reference = provider == kReferenceProvider;
  add_named_provider(registry, provider);
  std::vector<Case> cases = expand(named_plan(request.plan), {{}, {}, &registry, reference});
  std::erase_if(cases, [](const Case& c) { return c.implementation == nullptr || !c.synthetic; });
  JudgeContext context;
  context.program = program_word();
  LastQuestion asked;
  context.asked = &asked;
  std::map<std::string, AlarmRow> rows;
  for (uint64_t seed = request.first; seed <= request.seeds; ++seed) {
    context.seed = seed;
    context.rerun_options = "--plan " + request.plan + " --seed " + std::to_string(seed);
    if (provider != "builtin" && !reference) context.rerun_options += " --provider " + shell_word(provider);
    for (const Case& c : cases) {
      Verdict verdict = judge(c, context);
      if (verdict.status == Status::not_supported) continue;
      AlarmRow& row = rows[c.implementation->name()];
      ++row.judged;
      if (verdict.status == Status::pass)
        ++row.passed;
      else
        row.alarms.push_back(std::move(verdict));
    }
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
