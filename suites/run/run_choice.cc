// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/run_choice.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "suites/cases/model.h"
#include "suites/cases/named.h"
#include "suites/run/few_schemes.h"
#include "suites/run/provider_slots.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

// Asks the builtin kernels, of which this process calls none.
Candidates empty_candidates(const RunRequest& request, RunSetup& setup) {
  return Candidates(
      setup.fixtures, setup.offers, setup.slot_of,
      [&setup](std::span<const SupportQuestion> questions) {
        return ask_support(setup.slots[setup.slot_of.at("builtin")], questions, setup.plan.case_timeout_s);
      },
      request.seed);
}

// Asks a vendor of a few schemes of a family every input on them.
void add_few_schemes(RunSetup& setup, Candidates& candidates) {
  for (const auto& [provider, index] : setup.slot_of) {
    ProviderSlot& slot = setup.slots[index];
    if (is_shipped(slot.given) || !slot.ready.error.empty()) continue;
    const auto ask = [&](std::span<const SupportQuestion> questions) {
      return ask_support(slot, questions, setup.plan.case_timeout_s);
    };
    candidates.add_served(named_plan(kFullPlan), index,
                          served_in_few(setup.plan, candidates, index, setup.offers, ask));
  }
}

// Asks the layers of a model, and says which are left out.
void add_model(const RunRequest& request, const RunSetup& setup, Candidates& candidates) {
  if (request.model.empty() || !setup.head.infrastructure.empty()) return;
  ModelCases made = model_cases(read_model(request.model), setup.offers, request.selection);
  for (const std::string& each : made.left_out) std::cerr << "qcts: not asked: " << each << "\n";
  candidates.add_layers(setup.plan, std::move(made.cases));
}

// If --variant cannot run, that is an error; there is no fallback.
void check_variant(const std::string& variant, const std::vector<ProviderSlot>& slots) {
  std::vector<std::string> known;
  std::string refusal;
  bool runnable = false;
  for (const ProviderSlot& slot : slots) {
    if (!slot.ready.error.empty()) continue;
    for (const Json& implementation : slot.ready.info["implementations"]) {
      const std::string name = implementation["variant"];
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
      if (name != variant) continue;
      runnable = runnable || implementation["runnable"].get<bool>();
      refusal = implementation["refusal"];
    }
  }
  check_words("variant", {variant}, known);
  if (!runnable)
    throw RunError(Outcome::nothing_proved, "variant " + variant + " cannot run on this machine: " + refusal);
}

// Divides the latency budget among the cases. Variants that cannot run get no share.
void plan_latency(const RunRequest& request, RunSetup& setup, RunChoice& choice) {
  size_t runnable = 0, timed = 0;
  double weights = 0;
  for (const Candidate& candidate : choice.chosen) {
    if (candidate.name.id.kind != Kind::latency) continue;
    ++timed;
    if (!is_runnable(setup.slots[candidate.slot], candidate.name.variant)) continue;
    ++runnable;
    weights += request.device ? 1 : budget_share(choice.candidates.case_of(candidate));
  }
  if (timed == 0) return;
  if (request.gate_latency && request.threads != 1)
    throw UsageError("--gate latency needs --threads 1; with more threads latency is only reported");
  const double budget_s = setup.plan.latency_budget_s;
  choice.latency_budget_s = std::clamp(budget_s / std::max(1.0, weights), 0.05, 5.0);
  char prefill[48] = "", note[320];
  if (!request.device)
    std::snprintf(prefill, sizeof prefill, " (prefill: %g times that)", kPrefillBudgetShare);
  std::snprintf(
      note, sizeof note,
      "%zu cases share %g s, %.2f s each%s; one worker at a time, %u thread%s per call. Each row was timed "
      "in separate rounds, next to its own dense layer: compare ratios and shares, not microseconds.",
      runnable, budget_s, choice.latency_budget_s, prefill, request.threads, request.threads == 1 ? "" : "s");
  setup.head.latency_note = note;
}

std::string meant(const std::string& id) { return id.empty() ? "" : " (did you mean '" + id + "'?)"; }

}  // namespace

RunChoice choose_cases(const RunRequest& request, RunSetup& setup) {
  const Selection& selection = request.selection;
  if (!selection.variant.empty()) check_variant(selection.variant, setup.slots);
  RunChoice choice{empty_candidates(request, setup), {}, 0};
  choice.candidates.add(setup.plan, selection);
  choice.candidates.add_exact(named_plan(kFullPlan), selection);
  add_few_schemes(setup, choice.candidates);
  add_model(request, setup, choice.candidates);
  Selection unsharded = selection;
  unsharded.shard = unsharded.shards = 1;
  std::vector<Candidate> whole = select(unsharded, choice.candidates.all());
  std::vector<std::string> ids;
  for (const Candidate& candidate : whole) ids.push_back(candidate.name.full_id);
  setup.head.all_cases = ids.size();
  setup.head.cases_sha256 = ids_sha256(ids);
  choice.candidates.count_not_asked(unsharded, setup.head.providers);
  choice.chosen = selection.shards == 1 ? std::move(whole) : select(selection, choice.candidates.all());
  setup.head.cases = choice.chosen.size();
  plan_latency(request, setup, choice);
  return choice;
}

std::string why_none_is_chosen(const RunRequest& request, RunSetup& setup) {
  if (setup.head.all_cases != 0)
    return "no case was selected: shard " + std::to_string(setup.head.shard) + "/" +
           std::to_string(setup.head.shards) + " of " + std::to_string(setup.head.all_cases) +
           " cases is empty";
  if (const Json* provider = with_cases_not_asked(setup.head.providers); provider != nullptr)
    return "no case was selected: no recipe writes the inputs of those that match, and " +
           (*provider)["name"].get<std::string>() +
           " does not declare representable_inputs (kernels/abi/README.md)";
  std::string hint;
  Candidates everything = empty_candidates(request, setup);
  everything.add(setup.plan, {});
  for (const std::string& filter : request.selection.filters) {
    Selection alone;
    alone.filters = {filter};
    if (select(alone, everything.all()).empty())
      hint += ": nothing matches '" + filter + "'" + meant(nearest_id(filter, everything.all()));
  }
  return "no case was selected" + hint;
}

}  // namespace qcts
