// SPDX-License-Identifier: BSD-3-Clause
// Pairs cases with the kernels or providers that judge them.
#include <algorithm>
#include <utility>

#include "suites/cases/expand.h"

namespace qcts {

std::vector<OfferedCase> expand_offered(const Plan& plan, const ExpandInputs& inputs,
                                        const OfferTable& offers) {
  std::vector<OfferedCase> paired;
  for (const Case& c : expand(plan, inputs, offers))
    for (const Offer* offer : offers_for(c, plan, offers, inputs.with_reference))
      paired.push_back({c, offer, full_id(c, *offer)});
  std::ranges::sort(paired, {}, &OfferedCase::full_id);
  return paired;
}

std::vector<Case> expand(const Plan& plan, const RegistryInputs& sources, const Selection& selection) {
  OfferTable offers;
  if (sources.registry != nullptr)
    for (const ProviderInfo& info : sources.registry->providers())
      offers.add(offers_of(*sources.registry, info.name));
  const IdFilter filter(selection, offers.suffixes());
  const ExpandInputs inputs{sources.goldens, sources.malformed, sources.with_reference};
  std::vector<Case> paired;
  for (Case& c : expand(plan, inputs, offers, filter)) {
    for (const Offer* offer : offers_for(c, plan, offers, sources.with_reference)) {
      paired.push_back(c);
      bind_offer(paired.back(), offer->provider, offer->variant, *sources.registry);
    }
    if (c.id.op == Op::file) paired.push_back(std::move(c));
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
