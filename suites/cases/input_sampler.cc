// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/input_sampler.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>

#include "suites/inputs/input_families.h"

namespace qcts {
namespace {

// Number of a family's schemes that a reduced plan uses for one operation; intx has four times as many.
constexpr size_t kSchemesAnOp = 60;

struct FamilyInput {
  const Scheme* scheme;
  const Synthetic* input;
};

// Keeps, of the inputs with the most rows of x, those with the smallest weight: a determinism case repeats
// its call a hundred times, and calls two at a time only if there are enough rows.
void keep_cheapest(std::vector<FamilyInput>& inputs) {
  const auto cost = [](const FamilyInput& each) {
    return std::pair(-each.input->m, each.input->weight.n * each.input->weight.k);
  };
  const auto least = std::ranges::min(inputs, {}, cost);
  std::erase_if(inputs, [&](const FamilyInput& each) { return cost(each) != cost(least); });
}

// An input of `long` with many rows, which the inputs `tall` have too.
bool is_tall_and_long(const FamilyInput& each) {
  return each.input->generator == Generator::long_rows &&
         std::max(each.input->m, each.input->weight.n) > 0xFFFF;
}

// Deals inputs to fewer schemes: of the schemes of a family that have the same input but for n and k, every
// `share`-th keeps it, and always one. It starts at a different scheme for each input.
void deal(const std::vector<std::vector<Synthetic>*>& by_scheme, size_t share) {
  // input family, policy, dtype, m, and which one of the scheme's own that agree in these
  using Key = std::tuple<Generator, Policy, DType, int64_t, size_t>;
  const auto keys_of = [](const std::vector<Synthetic>& inputs) {
    std::vector<Key> keys;
    for (const Synthetic& input : inputs) {
      Key key{input.generator, input.activation, input.weight.dtype, input.m, 0};
      while (std::ranges::find(keys, key) != keys.end()) ++std::get<size_t>(key);
      keys.push_back(key);
    }
    return keys;
  };
  struct Hand {
    size_t schemes = 0, next = 0;
  };
  std::map<Key, Hand> hands;
  for (const auto* inputs : by_scheme)
    for (const Key& key : keys_of(*inputs)) ++hands[key].schemes;
  size_t start = 0;
  for (auto& [key, hand] : hands) hand.next = start++;
  for (auto* inputs : by_scheme) {
    std::vector<Synthetic> kept;
    const std::vector<Key> keys = keys_of(*inputs);
    for (size_t i = 0; i < keys.size(); ++i) {
      Hand& hand = hands[keys[i]];
      if (hand.next++ % std::min(share, hand.schemes) == 0) kept.push_back((*inputs)[i]);
    }
    *inputs = std::move(kept);
  }
}

// Inputs of one scheme.
struct Lot {
  std::vector<Synthetic>* of_scheme;
  int64_t inputs = 0;
  int64_t cost = 0;  // multiplications
};

using IsOfLot = std::function<bool(const Synthetic&)>;

// Keeps the inputs of a lot for `limit` schemes: those with the most inputs, then the cheapest, then in turn
// from `start`.
void limit_schemes(const std::vector<std::vector<Synthetic>*>& by_scheme, const IsOfLot& is_of_lot,
                   size_t limit, size_t start) {
  std::vector<Lot> lots;
  for (auto* inputs : by_scheme) {
    Lot lot{inputs};
    for (const Synthetic& input : *inputs) {
      if (!is_of_lot(input)) continue;
      ++lot.inputs;
      lot.cost += std::max<int64_t>(input.m, 1) * input.weight.n * input.weight.k;
    }
    if (lot.inputs > 0) lots.push_back(lot);
  }
  if (lots.size() <= limit) return;
  std::rotate(lots.begin(), lots.begin() + static_cast<std::ptrdiff_t>(start % lots.size()), lots.end());
  std::ranges::stable_sort(lots, {}, [](const Lot& lot) { return std::pair(-lot.inputs, lot.cost); });
  for (const Lot& lot : std::span(lots).subspan(limit)) std::erase_if(*lot.of_scheme, is_of_lot);
}

}  // namespace

Case synthetic_case(Kind kind, Op op, const Scheme& scheme, Layout layout, const Synthetic& input) {
  Case c;
  c.id = {kind, op, std::string(scheme.name()), input_name(input, op, layout)};
  c.scheme = &scheme;
  c.question = SyntheticQuestion{input, layout};
  return c;
}

InputSampler::InputSampler(const Plan& plan, uint64_t seed) : plan_(plan), seed_(seed) {
  if (plan.cover) listed_.insert(plan.cover->begin(), plan.cover->end());
  std::map<std::string_view, size_t> families;
  for (const Scheme* scheme : schemes()) siblings_[scheme].place = families[scheme->family()]++;
  for (auto& [scheme, sibling] : siblings_) sibling.count = families[scheme->family()];
}

// Is input `index` of `count` sampled for this scheme? Determinism is a property of kernels more than of
// schemes, so a reduced plan skips some schemes; if many schemes share kernels, each is tested on one
// operation.
bool InputSampler::is_sampled(Kind kind, Op op, const Scheme& scheme, size_t index, size_t count) const {
  if (!plan_.schemes_per_input || !is_listed(scheme)) return true;
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
    const std::vector<Synthetic> inputs = synthetic_inputs(kind, op, scheme, layout, set, &support, seed_);
    for (const Policy policy : scheme.activations()) {
      // Sampled for each policy separately: a kernel serves one or two policies, and every scheme of its
      // family must get inputs.
      std::vector<Synthetic> sampled;
      std::ranges::copy_if(inputs, std::back_inserter(sampled),
                           [&](const Synthetic& input) { return input.activation == policy; });
      const auto turns = static_cast<size_t>(
          std::ranges::count_if(sampled, [](const Synthetic& input) { return !is_sampled_alone(input); }));
      for (size_t i = 0; i < sampled.size(); ++i) {
        if (!only_listed && !is_limited(sampled[i]) &&
            !is_sampled(kind, op, scheme, i, std::max<size_t>(turns, 1)))
          continue;
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

bool InputSampler::is_limited(const Synthetic& input) const {
  return input.is_other_dtype ? plan_.other_dtypes_a_family.has_value()
                              : plan_.schemes_a_family.contains(input.generator);
}

void InputSampler::limit_inputs(const std::vector<std::vector<Synthetic>*>& by_scheme) const {
  std::set<Policy> policies;
  std::set<Generator> in_other_dtypes;
  for (const auto* inputs : by_scheme)
    for (const Synthetic& input : *inputs) {
      policies.insert(input.activation);
      if (input.is_other_dtype) in_other_dtypes.insert(input.generator);
    }
  size_t start = 0;
  const auto limit = [&](Generator generator, bool is_other, int64_t count) {
    for (const Policy policy : policies)
      limit_schemes(
          by_scheme,
          [&](const Synthetic& input) {
            return input.generator == generator && input.is_other_dtype == is_other &&
                   input.activation == policy;
          },
          static_cast<size_t>(count), 7 * start++);
  };
  // The turn of a limit decides which schemes it keeps, so families that came later are limited last.
  constexpr Generator kFirstLate = Generator::deeper;
  const auto limit_families = [&](bool late) {
    for (const auto& [generator, count] : plan_.schemes_a_family)
      if ((generator >= kFirstLate) == late) limit(generator, false, count);
  };
  const auto limit_other_dtypes = [&](bool late) {
    if (!plan_.other_dtypes_a_family) return;
    for (const Generator generator : in_other_dtypes)
      if ((generator >= Generator::subnormal_x) == late) limit(generator, true, *plan_.other_dtypes_a_family);
  };
  limit_families(false);
  limit_other_dtypes(false);
  limit_families(true);
  limit_other_dtypes(true);
}

const InputSampler::FamilyInputs& InputSampler::inputs_of_family(Kind kind, Op op, const Scheme& scheme,
                                                                 Layout layout) {
  const auto [at, is_new] = families_.try_emplace({kind, op, std::string(scheme.family()), layout});
  FamilyInputs& family = at->second;
  if (!is_new) return family;
  std::vector<std::vector<Synthetic>*> by_scheme;
  for (const Scheme* sibling : schemes()) {
    const std::optional<Layout> own = sibling->find_layout(layout.name());
    if (sibling->family() != scheme.family() || !own) continue;
    by_scheme.push_back(&(family.by_scheme[sibling] = sampled_inputs(kind, op, *sibling, *own)));
  }
  limit_inputs(by_scheme);
  if (kind == Kind::determinism && plan_.determinism_share)
    deal(by_scheme, static_cast<size_t>(*plan_.determinism_share));
  std::map<ChoiceKey, std::vector<FamilyInput>> all;
  for (const Scheme* sibling : schemes())
    if (const auto found = family.by_scheme.find(sibling); found != family.by_scheme.end())
      for (const Synthetic& input : found->second) all[choice_key(input)].push_back({sibling, &input});
  // Start at a different scheme for each input family, so that the choice does not always fall on the same
  // one.
  size_t turn = 0;
  std::map<Policy, size_t> turns;
  for (auto& [key, candidates] : all) {
    if (kind == Kind::determinism && plan_.determinism_once) keep_cheapest(candidates);
    if (is_once_a_family(kind, std::get<Generator>(key)) &&
        plan_.schemes_a_family.contains(Generator::tall) &&
        !std::ranges::all_of(candidates, is_tall_and_long))
      std::erase_if(candidates, is_tall_and_long);
    const FamilyInput& chosen = candidates[turn++ * 7 % candidates.size()];
    family.chosen[key] = {chosen.scheme, input_name(*chosen.input, op, layout),
                          turns[std::get<Policy>(key)]++};
  }
  return family;
}

// A tall weight tests a kernel's grid and a wide one its loop along a row, so emulated variants get one of
// each from the input families that they run only once.
InputSampler::ChoiceKey InputSampler::choice_key(const Synthetic& input) const {
  const bool once =
      std::ranges::find(plan_.emulated_once_a_family, input.generator) != plan_.emulated_once_a_family.end();
  return {input.generator, input.activation, once && input.weight.n > input.weight.k, input.is_other_dtype};
}

bool InputSampler::samples_by_family(Kind kind) const {
  return plan_.emulated_once || !plan_.once_a_family.empty() || !plan_.emulated_once_a_family.empty() ||
         !plan_.schemes_a_family.empty() || plan_.other_dtypes_a_family ||
         ((plan_.determinism_once || plan_.determinism_share) && kind == Kind::determinism);
}

bool InputSampler::is_once_a_family(Kind kind, Generator generator) const {
  return (plan_.determinism_once && kind == Kind::determinism) ||
         std::ranges::find(plan_.once_a_family, generator) != plan_.once_a_family.end();
}

bool InputSampler::is_for_emulated(Kind kind, const Synthetic& input, bool is_chosen, size_t turn) const {
  const auto is_in = [&](const std::vector<Generator>& list) {
    return std::ranges::find(list, input.generator) != list.end();
  };
  if (!plan_.emulated_once)
    return is_chosen || !(input.is_other_dtype || is_in(plan_.emulated_once_a_family));
  if (!is_chosen || input.is_other_dtype || is_in(plan_.emulated_never)) return false;
  if (!plan_.emulated_share) return true;
  return kind != Kind::determinism && turn % static_cast<size_t>(*plan_.emulated_share) == 0;
}

std::vector<Case> InputSampler::cases_of(Kind kind, Op op, const Scheme& scheme, Layout layout) {
  std::vector<Case> cases;
  if (!samples_by_family(kind) || !is_listed(scheme)) {
    for (const Synthetic& input : sampled_inputs(kind, op, scheme, layout))
      cases.push_back(synthetic_case(kind, op, scheme, layout, input));
    return cases;
  }
  const FamilyInputs& family = inputs_of_family(kind, op, scheme, layout);
  for (const Synthetic& input : family.by_scheme.at(&scheme)) {
    Case c = synthetic_case(kind, op, scheme, layout, input);
    const Choice& chosen = family.chosen.at(choice_key(input));
    const bool is_chosen = chosen.scheme == &scheme && chosen.input == c.id.input;
    const bool is_listed = listed_.contains(c.id.text());
    if (!is_chosen && is_once_a_family(kind, input.generator) && !is_listed) continue;
    c.for_emulated = is_listed || is_for_emulated(kind, input, is_chosen, chosen.turn);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace qcts
