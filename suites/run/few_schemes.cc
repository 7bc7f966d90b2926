// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/few_schemes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace qcts {
namespace {

// Cases of one scheme about which its kernels are asked, spread over shapes, dtypes and policies.
constexpr size_t kQuestions = 12;

using Family = std::pair<Op, std::string>;
using CasesOfScheme = std::map<const Scheme*, std::vector<const Candidate*>>;

std::map<Family, CasesOfScheme> cases_of_slot(const Candidates& candidates, size_t slot) {
  std::map<Family, CasesOfScheme> families;
  for (const Candidate& candidate : candidates.all()) {
    const Case& c = candidates.case_of(candidate);
    const bool is_of_kernels = c.id.kind == Kind::numerics || c.id.kind == Kind::determinism;
    if (candidate.slot == slot && is_of_kernels && c.synthetic() != nullptr)
      families[{c.id.op, std::string(c.scheme->family())}][c.scheme].push_back(&candidate);
  }
  return families;
}

const Offer& offer_of(const OfferTable& offers, const Case& c, const Candidate& candidate) {
  const auto of_family = offers.find(c.id.op, c.scheme->family());
  return **std::ranges::find_if(
      of_family, [&](const Offer* offer) { return full_id(c, *offer) == candidate.name.full_id; });
}

}  // namespace

std::vector<const Scheme*> schemes_asked_whole(const std::vector<const Scheme*>& served,
                                               size_t all_of_family) {
  if (served.size() <= kFewSchemes) return served;
  std::vector<const Scheme*> spread;
  if (served.size() == all_of_family) return spread;
  for (size_t i = 0; i < kFewSchemes; ++i) spread.push_back(served[i * served.size() / kFewSchemes]);
  return spread;
}

Candidates::Served served_in_few(const Plan& plan, const Candidates& candidates, size_t slot,
                                 const OfferTable& offers, const AskSupport& ask) {
  Candidates::Served few;
  if (!plan.all_inputs || !plan.schemes_per_input) return few;
  const std::map<Family, CasesOfScheme> families = cases_of_slot(candidates, slot);
  std::vector<SupportQuestion> questions;
  for (const auto& [family, schemes] : families)
    for (const auto& [scheme, asked] : schemes)
      for (size_t i = 0; i < std::min(kQuestions, asked.size()); ++i) {
        const Candidate& candidate = *asked[i * asked.size() / std::min(kQuestions, asked.size())];
        const Case& c = candidates.case_of(candidate);
        questions.push_back({&c, &offer_of(offers, c, candidate)});
      }
  if (questions.empty()) return few;
  const std::vector<bool> answers = ask(questions);
  std::set<std::pair<Op, const Scheme*>> served;
  for (size_t i = 0; i < questions.size(); ++i)
    if (answers[i]) served.emplace(questions[i].asked->id.op, questions[i].asked->scheme);
  for (const auto& [family, by_scheme] : families) {
    std::vector<const Scheme*> of_family;
    for (const Scheme* scheme : schemes())
      if (by_scheme.contains(scheme) && served.contains({family.first, scheme})) of_family.push_back(scheme);
    for (const Scheme* scheme : schemes_asked_whole(of_family, by_scheme.size()))
      few.emplace(family.first, scheme);
  }
  return few;
}

}  // namespace qcts
