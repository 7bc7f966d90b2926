// SPDX-License-Identifier: BSD-3-Clause
// Pairs cases with the kernels or providers that judge them.
#include <algorithm>
#include <set>
#include <utility>

#include "suites/cases/expand.h"

namespace qcts {

std::vector<PairedCase> expand_paired(const Plan& plan, const ExpandInputs& inputs, const OfferTable& offers,
                                      const AskSupport& ask, const IdFilter& filter) {
  return pair_cases(expand(plan, inputs, offers, filter), plan, offers, ask, inputs.with_reference);
}

std::vector<PairedCase> pair_cases(std::vector<Case> cases, const Plan& plan, const OfferTable& offers,
                                   const AskSupport& ask, bool with_reference) {
  std::vector<SupportQuestion> questions;
  for (const Case& c : cases)
    for (const SupportQuestion& question : support_questions(c, plan, offers)) questions.push_back(question);
  std::set<std::pair<const Case*, const Offer*>> declined;
  if (!questions.empty()) {
    const std::vector<bool> answers = ask(questions);
    for (size_t i = 0; i < questions.size(); ++i)
      if (!answers.at(i)) declined.emplace(questions[i].asked, questions[i].offer);
  }
  std::vector<PairedCase> paired;
  for (Case& c : cases) {
    const auto serves = [&](const Offer& offer) { return !declined.contains({&c, &offer}); };
    std::vector<const Offer*> found = offers_for(c, plan, offers, serves, with_reference);
    std::vector<const Offer*> undeclared = undeclared_offers(c, plan, offers, with_reference);
    if (c.id.op == Op::file || !found.empty() || !undeclared.empty())
      paired.push_back({std::move(c), std::move(found), std::move(undeclared)});
  }
  return paired;
}

std::vector<OfferedCase> expand_offered(const Plan& plan, const ExpandInputs& inputs,
                                        const OfferTable& offers, const AskSupport& ask) {
  std::vector<OfferedCase> offered;
  for (const PairedCase& paired : expand_paired(plan, inputs, offers, ask))
    for (const Offer* offer : paired.offers)
      offered.push_back({paired.asked, offer, full_id(paired.asked, *offer)});
  std::ranges::sort(offered, {}, &OfferedCase::full_id);
  return offered;
}

std::vector<Case> expand(const Plan& plan, const RegistryInputs& sources, const Selection& selection) {
  OfferTable offers;
  if (sources.registry != nullptr)
    for (const ProviderInfo& info : sources.registry->providers())
      offers.add(offers_of(*sources.registry, info.name));
  const IdFilter filter(selection, offers.suffixes());
  const ExpandInputs inputs{sources.goldens, sources.malformed, sources.with_reference};
  const AskSupport ask = sources.registry != nullptr ? ask_registry(*sources.registry) : AskSupport();
  std::vector<Case> paired;
  for (PairedCase& each : expand_paired(plan, inputs, offers, ask, filter)) {
    for (const Offer* offer : each.offers) {
      paired.push_back(each.asked);
      bind_offer(paired.back(), offer->provider, offer->variant, *sources.registry);
    }
    if (each.asked.id.op == Op::file) paired.push_back(std::move(each.asked));
  }
  std::vector<std::pair<std::string, size_t>> order;
  for (size_t i = 0; i < paired.size(); ++i) order.emplace_back(paired[i].full_id(), i);
  std::ranges::sort(order);
  std::vector<Case> sorted;
  sorted.reserve(order.size());
  for (const auto& [name, index] : order) sorted.push_back(std::move(paired[index]));
  return sorted;
}

}  // namespace qcts
