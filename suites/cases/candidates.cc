// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/candidates.h"

#include <algorithm>
#include <utility>

#include "suites/cases/model.h"

namespace qcts {
namespace {

// Returns the case of each exact id, with or without its implementation, that names a layer of a model.
std::vector<Case> layers_named(const std::vector<std::string>& ids) {
  std::vector<Case> cases;
  for (const std::string& text : ids)
    if (const std::optional<CaseId> id = parse_case_id(text))
      if (std::optional<Case> layer =
              layer_case({id->kind, id->op, id->scheme, id->input.substr(0, id->input.find('/'))}))
        cases.push_back(*std::move(layer));
  return cases;
}

}  // namespace

Candidates::Candidates(const Fixtures& fixtures, const OfferTable& offers,
                       const std::map<std::string, size_t>& slot_of, AskSupport ask, uint64_t seed)
    : fixtures_(fixtures), offers_(offers), slot_of_(slot_of), ask_(std::move(ask)), seed_(seed) {}

void Candidates::add(const Plan& plan, const Selection& selection) {
  const IdFilter filter(selection, offers_.suffixes());
  add_paired(
      expand_paired(plan, {fixtures_.goldens, fixtures_.malformed, false, seed_}, offers_, ask_, filter));
}

void Candidates::add_layers(const Plan& plan, std::vector<Case> layers) {
  std::set<std::string> known;
  for (const Case& c : cases_)
    if (c.synthetic() != nullptr && c.synthetic()->generator == Generator::layer) known.insert(c.id.text());
  std::erase_if(layers, [&](const Case& c) { return !known.insert(c.id.text()).second; });
  add_paired(pair_cases(std::move(layers), plan, offers_, ask_, false));
}

void Candidates::add_paired(std::vector<PairedCase> paired) {
  const auto files = slot_of_.find(kFileProvider);
  for (auto& [c, offers, undeclared] : paired) {
    const size_t index = cases_.size();
    for (const Offer* offer : offers)
      candidates_.push_back(
          {{c.id, full_id(c, *offer), offer->variant}, slot_of_.at(offer->provider), index});
    for (const Offer* offer : undeclared)
      undeclared_.push_back(
          {{c.id, full_id(c, *offer), offer->variant}, slot_of_.at(offer->provider), index});
    if (files != slot_of_.end() && is_judged_by_suite(c, offers))
      candidates_.push_back({{c.id, c.full_id(), ""}, files->second, index});
    cases_.push_back(std::move(c));
  }
}

void Candidates::add_exact(const Plan& plan, const Selection& selection) {
  Selection missing;
  for (const std::string& filter : selection.filters) {
    const bool is_exact = filter.find_first_of("*?") == filter.npos && parse_case_id(filter);
    if (is_exact && !names_exactly(filter, candidates_)) missing.filters.push_back(filter);
  }
  if (missing.filters.empty()) return;
  const size_t before = candidates_.size(), undeclared_before = undeclared_.size();
  add(plan, missing);
  add_layers(plan, layers_named(missing.filters));
  std::vector<Candidate> exactly;
  for (size_t i = undeclared_before; i < undeclared_.size(); ++i)
    if (std::ranges::any_of(missing.filters, [&](const std::string& filter) {
          return names_exactly(filter, {undeclared_[i]});
        }))
      exactly.push_back(undeclared_[i]);
  undeclared_.resize(undeclared_before);
  undeclared_.insert(undeclared_.end(), exactly.begin(), exactly.end());
  const std::vector<Candidate> found(candidates_.begin() + static_cast<std::ptrdiff_t>(before),
                                     candidates_.end());
  candidates_.resize(before);
  for (const std::string& filter : missing.filters)
    for (const Candidate& candidate : found)
      if (names_exactly(filter, {candidate})) candidates_.push_back(candidate);
}

void Candidates::add_served(const Plan& plan, size_t slot, const Served& served) {
  if (served.empty()) return;
  Selection selection;
  for (const auto& [op, scheme] : served)
    selection.filters.push_back("*." + std::string(op_name(op)) + "/" + std::string(scheme->name()) + "/*");
  const auto keep_new = [&](std::vector<Candidate>& all, size_t before) {
    std::set<std::string> known;
    for (size_t i = 0; i < before; ++i)
      if (all[i].slot == slot) known.insert(all[i].name.full_id);
    const auto [first, last] = std::ranges::remove_if(
        all.begin() + static_cast<std::ptrdiff_t>(before), all.end(), [&](const Candidate& each) {
          const Case& c = case_of(each);
          return each.slot != slot || !served.contains({c.id.op, c.scheme}) ||
                 known.contains(each.name.full_id);
        });
    all.erase(first, last);
  };
  const size_t before = candidates_.size(), undeclared_before = undeclared_.size();
  add(plan, selection);
  keep_new(candidates_, before);
  keep_new(undeclared_, undeclared_before);
}

void Candidates::count_not_asked(const Selection& selection, nlohmann::ordered_json& providers) const {
  std::map<size_t, uint64_t> counts;
  for (const Candidate& candidate : select(selection, undeclared_)) ++counts[candidate.slot];
  for (nlohmann::ordered_json& provider : providers)
    if (const auto found = counts.find(slot_of_.at(provider["name"].get<std::string>()));
        found != counts.end())
      provider["not_asked"] = found->second;
}

std::string Candidates::input_text(const Candidate& candidate) const {
  if (candidate.name.id.op == Op::file) return "-";
  const KindOfInput input = kind_of(case_of(candidate));
  return std::string(input_kind_name(input.kind)) + (input.outside.empty() ? "" : " (" + input.outside + ")");
}

const nlohmann::ordered_json* with_cases_not_asked(const nlohmann::ordered_json& providers) {
  for (const nlohmann::ordered_json& provider : providers)
    if (provider.contains("not_asked")) return &provider;
  return nullptr;
}

}  // namespace qcts
