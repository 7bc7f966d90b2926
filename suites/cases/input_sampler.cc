// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/input_sampler.h"

#include <algorithm>
#include <iterator>

#include "suites/inputs/input_families.h"

namespace qcts {
namespace {

// Number of a family's schemes that a reduced plan uses for one operation; intx has four times as many.
constexpr size_t kSchemesAnOp = 60;

}  // namespace

Case synthetic_case(Kind kind, Op op, const Scheme& scheme, Layout layout, const Synthetic& input) {
  Case c;
  c.id = {kind, op, std::string(scheme.name()), input_name(input, op, layout)};
  c.scheme = &scheme;
  c.synthetic = input;
  c.layout = layout;
  c.activation = input.activation;
  return c;
}

InputSampler::InputSampler(const Plan& plan) : plan_(plan) {
  if (plan.cover) listed_.insert(plan.cover->begin(), plan.cover->end());
  std::map<std::string_view, size_t> families;
  for (const Scheme* scheme : schemes()) siblings_[scheme].place = families[scheme->family()]++;
  for (auto& [scheme, sibling] : siblings_) sibling.count = families[scheme->family()];
}

// Is input `index` of `count` sampled for this scheme? Determinism is a property of kernels more than of
// schemes, so a reduced plan skips some schemes; if many schemes share kernels, each is tested on one
// operation.
bool InputSampler::is_sampled(Kind kind, Op op, const Scheme& scheme, size_t index, size_t count) const {
  if (!plan_.schemes_per_input) return true;
  const auto [place, siblings] = siblings_.at(&scheme);
  const size_t stride = std::max<size_t>(1, siblings / static_cast<size_t>(*plan_.schemes_per_input));
  if (index % stride == place % stride) return true;
  if (plan_.all_inputs) return index == place % count;
  const size_t turns = (siblings + kSchemesAnOp - 1) / kSchemesAnOp;
  const auto turn = static_cast<size_t>(std::ranges::find(kOps, op) - std::begin(kOps));
  return kind != Kind::determinism && place % turns == turn % turns && index == place / turns % count;
}

// A few of each input family if the plan says so, and those in its cover.
std::vector<Synthetic> InputSampler::sampled_inputs(Kind kind, Op op, const Scheme& scheme, Layout layout) {
  std::set<std::string> taken;
  std::vector<Synthetic> out;
  GeneratorSupport& support = support_.try_emplace(&scheme, scheme).first->second;
  const auto add_set = [&](InputSet set, bool only_listed) {
    const std::vector<Synthetic> inputs = synthetic_inputs(kind, op, scheme, layout, set, &support);
    for (const Policy policy : scheme.activations()) {
      // Sampled for each policy separately: a kernel serves one or two policies, and every scheme of its
      // family must get inputs.
      std::vector<Synthetic> sampled;
      std::ranges::copy_if(inputs, std::back_inserter(sampled),
                           [&](const Synthetic& input) { return input.activation == policy; });
      const auto turns = static_cast<size_t>(std::ranges::count_if(sampled, [](const Synthetic& input) {
        return !input_family(input.generator).excluded_from_sampling;
      }));
      for (size_t i = 0; i < sampled.size(); ++i) {
        if (!only_listed && !is_sampled(kind, op, scheme, i, std::max<size_t>(turns, 1))) continue;
        const std::string id = synthetic_case(kind, op, scheme, layout, sampled[i]).id.text();
        if ((!only_listed || listed_.contains(id)) && taken.insert(id).second) out.push_back(sampled[i]);
      }
    }
  };
  if (!plan_.all_inputs) add_set(InputSet::few, false);
  const std::string stem = CaseId{kind, op, std::string(scheme.name()), ""}.text();
  const auto first = listed_.lower_bound(stem);
  const bool any_listed = first != listed_.end() && first->starts_with(stem);
  if (plan_.all_inputs || any_listed) add_set(InputSet::all, !plan_.all_inputs);
  return out;
}

const InputSampler::FamilyInputs& InputSampler::inputs_of_family(Kind kind, Op op, const Scheme& scheme,
                                                                 Layout layout) {
  const auto [at, is_new] = families_.try_emplace({kind, op, std::string(scheme.family()), layout});
  FamilyInputs& family = at->second;
  if (!is_new) return family;
  std::map<std::pair<Generator, Policy>, std::vector<std::pair<const Scheme*, std::string>>> all;
  for (const Scheme* sibling : schemes()) {
    const std::optional<Layout> own = sibling->find_layout(layout.name());
    if (sibling->family() != scheme.family() || !own) continue;
    std::vector<Synthetic>& inputs = family.by_scheme[sibling] = sampled_inputs(kind, op, *sibling, *own);
    for (const Synthetic& input : inputs)
      all[{input.generator, input.activation}].emplace_back(sibling, input_name(input, op, layout));
  }
  // Start at a different scheme for each input family, so that the choice does not always fall on the same
  // one.
  size_t turn = 0;
  for (const auto& [key, candidates] : all) family.chosen[key] = candidates[turn++ * 7 % candidates.size()];
  return family;
}

bool InputSampler::samples_by_family(Kind kind) const {
  return plan_.emulated_once || !plan_.once_a_family.empty() ||
         (plan_.determinism_once && kind == Kind::determinism);
}

bool InputSampler::is_once_a_family(Kind kind, Generator generator) const {
  return (plan_.determinism_once && kind == Kind::determinism) ||
         std::ranges::find(plan_.once_a_family, generator) != plan_.once_a_family.end();
}

std::vector<Case> InputSampler::cases_of(Kind kind, Op op, const Scheme& scheme, Layout layout) {
  std::vector<Case> cases;
  if (!samples_by_family(kind)) {
    for (const Synthetic& input : sampled_inputs(kind, op, scheme, layout))
      cases.push_back(synthetic_case(kind, op, scheme, layout, input));
    return cases;
  }
  const FamilyInputs& family = inputs_of_family(kind, op, scheme, layout);
  for (const Synthetic& input : family.by_scheme.at(&scheme)) {
    Case c = synthetic_case(kind, op, scheme, layout, input);
    const auto& chosen = family.chosen.at({input.generator, input.activation});
    const bool is_chosen = chosen.first == &scheme && chosen.second == c.id.input;
    if (!is_chosen && is_once_a_family(kind, input.generator) && !listed_.contains(c.id.text())) continue;
    c.for_emulated = !plan_.emulated_once || (is_chosen && input.generator != Generator::large);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace qcts
