// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/expand.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "suites/cases/best_variants.h"
#include "suites/inputs/inputs.h"
#include "suites/providers/reference_provider.h"

namespace qcts {
namespace {

constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789_/.";

std::string slug(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    const char lower = upper ? static_cast<char>(c - 'A' + 'a') : c;
    out += (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') ? lower : '_';
  }
  return out;
}

// The scheme's place in the id of a case that judges a whole golden.
std::string scheme_of(const Golden& golden) {
  std::set<std::string> names;
  for (const Golden::TensorInfo& tensor : golden.tensors)
    if (!tensor.scheme.empty()) names.insert(tensor.scheme);
  if (names.empty()) return "plain";
  return names.size() == 1 ? *names.begin() : "mixed";
}

std::string tensor_slug(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (name.size() > kWeight.size() && name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  return slug(name);
}

constexpr Op kOps[] = {Op::quantize, Op::quantize_activation, Op::dequantize, Op::linear, Op::pack,
                       Op::unpack};
// Schemes of a family that a plan of few inputs asks of one operation; intx has four times as many.
constexpr size_t kSchemesAnOp = 60;

bool listed(const std::vector<std::string>& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

// Does the golden hold what judging this op needs? The file itself gives the planes of every tensor.
bool has_evidence(const Golden::TensorInfo& tensor, Op op) {
  const auto& have = tensor.expected;
  const bool weight = listed(have, "w") || tensor.w_seed.has_value();
  const bool packed = tensor.layout != "plain" && !tensor.layout.empty();
  const bool codes = !packed || listed(have, "codes");
  if (op == Op::quantize) return weight && codes;
  if (op == Op::dequantize) return listed(have, "dequant");
  if (op == Op::pack || op == Op::unpack) return packed && codes;
  if (op == Op::linear) return listed(have, "x") && listed(have, "y");
  if (op == Op::quantize_activation)
    return listed(have, "x") && std::any_of(have.begin(), have.end(),
                                            [](const std::string& word) { return word.starts_with("act."); });
  return false;
}

class Expander {
 public:
  Expander(const Plan& plan, const ExpandInputs& inputs, const OfferTable& offers, const IdFilter& filter)
      : plan_(plan), inputs_(inputs), offers_(offers), filter_(filter) {
    if (plan.cover) listed_.insert(plan.cover->begin(), plan.cover->end());
    std::map<std::string_view, size_t> families;
    for (const Scheme* scheme : schemes()) siblings_[scheme].first = families[scheme->family()]++;
    for (auto& [scheme, sibling] : siblings_) sibling.second = families[scheme->family()];
    for (const Golden& golden : inputs.goldens)
      if (!golden.is_external) first_.try_emplace(scheme_of(golden), &golden);
  }

  std::vector<Case> run() {
    for (const Kind kind : plan_.kinds) expand_kind(kind);
    std::vector<std::pair<std::string, size_t>> order;
    for (size_t i = 0; i < cases_.size(); ++i) {
      order.emplace_back(cases_[i].id.text(), i);
      const std::string& id = order.back().first;
      if (id.find_first_not_of(kAlphabet) != id.npos || !parse_case_id(id))
        throw std::runtime_error("case id outside kind.op/scheme/input in [a-z0-9_/.]: " + id);
    }
    std::sort(order.begin(), order.end());
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i].first == order[i - 1].first)
        throw std::runtime_error("two cases share one id: " + order[i].first);
    std::vector<Case> sorted;
    sorted.reserve(order.size());
    for (const auto& [name, index] : order) sorted.push_back(std::move(cases_[index]));
    return sorted;
  }

 private:
  // Keeps the case where it is wanted and something can judge it.
  void add(Case c) {
    if (!filter_.may_take(c.id)) return;
    if (c.golden != nullptr && is_left_out(*c.golden) && !listed_.contains(c.id.text())) return;
    if (c.id.op == Op::file || !offers_for(c, plan_, offers_, inputs_.with_reference).empty())
      cases_.push_back(std::move(c));
  }

  bool is_left_out(const Golden& golden) const {
    return plan_.cover && !golden.is_external && first_.at(scheme_of(golden)) != &golden;
  }

  void expand_kind(Kind kind) {
    switch (kind) {
      case Kind::round_trip:
      case Kind::assign:
      case Kind::size:
        for (const Golden& golden : inputs_.goldens) add_file(kind, golden);
        break;
      case Kind::reject:
        for (const Malformed& malformed : inputs_.malformed) add_reject(malformed);
        break;
      case Kind::numerics:
        for (const Golden& golden : inputs_.goldens) add_golden_numerics(golden);
        [[fallthrough]];
      case Kind::determinism:
        for (const Scheme* scheme : schemes()) add_synthetic(kind, *scheme);
        break;
      case Kind::latency:
        for (const Scheme* scheme : schemes()) add_latency(*scheme);
        break;
    }
  }

  void add_file(Kind kind, const Golden& golden) {
    Case c;
    const std::string scheme = scheme_of(golden);
    c.id = {kind, Op::file, scheme, golden_input(golden.id, scheme)};
    c.scheme = find_scheme(scheme);
    c.golden = &golden;
    add(std::move(c));
  }

  void add_reject(const Malformed& malformed) {
    Case c;
    c.id = {Kind::reject, Op::file, "any", slug(malformed.id)};
    c.malformed = &malformed;
    add(std::move(c));
  }

  void add_golden_numerics(const Golden& golden) {
    std::set<std::string> slugs;
    for (size_t i = 0; i < golden.tensors.size(); ++i) {
      const Golden::TensorInfo& tensor = golden.tensors[i];
      std::string name = tensor_slug(tensor.name);
      if (!slugs.insert(name).second) name += "_t" + std::to_string(i);
      const Scheme* scheme = find_scheme(tensor.scheme);
      if (scheme == nullptr) continue;
      for (const Op op : kOps) {
        if (!has_evidence(tensor, op)) continue;
        Case c;
        c.id = {Kind::numerics, op, tensor.scheme, golden_input(golden.id, tensor.scheme) + "_" + name};
        c.scheme = scheme;
        c.golden = &golden;
        c.tensor = tensor.name;
        c.layout = op == Op::pack || op == Op::unpack ? tensor.layout : "plain";
        if (op == Op::linear || op == Op::quantize_activation) c.activation = tensor.activation;
        add(std::move(c));
      }
    }
  }

  bool is_implemented(Op op, const Scheme& scheme) const {
    return std::ranges::any_of(offers_.find(op, scheme.family()), [&](const Offer* offer) {
      return inputs_.with_reference || offer->provider != kReferenceProvider;
    });
  }

  // Is input `index` of `count` dealt to this scheme? Whether answers repeat is a kernel's property more than
  // a scheme's, so a plan of few inputs lets schemes go without; and where many schemes share their kernels,
  // each is asked one operation.
  bool is_dealt(Kind kind, Op op, const Scheme& scheme, size_t index, size_t count) const {
    if (!plan_.schemes_an_input) return true;
    const auto [place, siblings] = siblings_.at(&scheme);
    const size_t stride = std::max<size_t>(1, siblings / static_cast<size_t>(*plan_.schemes_an_input));
    if (index % stride == place % stride) return true;
    if (plan_.every_input) return index == place % count;
    const size_t turns = (siblings + kSchemesAnOp - 1) / kSchemesAnOp;
    const auto turn = static_cast<size_t>(std::ranges::find(kOps, op) - std::begin(kOps));
    return kind != Kind::determinism && place % turns == turn % turns && index == place / turns % count;
  }

  GeneratorSupport& support_of(const Scheme& scheme) {
    return support_.try_emplace(&scheme, scheme).first->second;
  }

  // Few of each family where the plan says so, and those that its cover lists.
  std::vector<Synthetic> dealt_inputs(Kind kind, Op op, const Scheme& scheme, std::string_view layout) {
    std::set<std::string> taken;
    std::vector<Synthetic> out;
    const auto add_set = [&](InputSet set, bool only_listed) {
      const std::vector<Synthetic> inputs =
          synthetic_inputs(kind, op, scheme, layout, set, &support_of(scheme));
      for (const ActivationInfo& policy : scheme.activations()) {
        // Dealt by policy: a kernel takes one or two of them, and no scheme of its family is to go without.
        std::vector<Synthetic> dealt;
        std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(dealt),
                     [&](const Synthetic& input) { return input.activation == policy.name; });
        const auto turns =
            static_cast<size_t>(std::count_if(dealt.begin(), dealt.end(), [](const Synthetic& input) {
              return !find_input_family(input.generator)->excluded_from_sampling;
            }));
        for (size_t i = 0; i < dealt.size(); ++i) {
          if (!only_listed && !is_dealt(kind, op, scheme, i, std::max<size_t>(turns, 1))) continue;
          const std::string id = synthetic_case(kind, op, scheme, layout, dealt[i]).id.text();
          if ((!only_listed || listed_.contains(id)) && taken.insert(id).second) out.push_back(dealt[i]);
        }
      }
    };
    if (!plan_.every_input) add_set(InputSet::few, false);
    const std::string stem = CaseId{kind, op, std::string(scheme.name()), ""}.text();
    const auto first = listed_.lower_bound(stem);
    const bool any_listed = first != listed_.end() && first->starts_with(stem);
    if (plan_.every_input || any_listed) add_set(InputSet::all, !plan_.every_input);
    return out;
  }

  // The inputs of one family of schemes for a (kind, op, layout), and of each input family and policy the one
  // that stands for all.
  struct FamilyInputs {
    std::map<const Scheme*, std::vector<Synthetic>> by_scheme;
    std::map<std::pair<Generator, std::string>, std::pair<const Scheme*, std::string>> chosen;
  };

  // Made of the whole family, whatever the filter takes, so that a filter does not change what is chosen.
  const FamilyInputs& inputs_of_family(Kind kind, Op op, const Scheme& scheme, std::string_view layout) {
    const auto [at, is_new] =
        families_.try_emplace({kind, op, std::string(scheme.family()), std::string(layout)});
    FamilyInputs& family = at->second;
    if (!is_new) return family;
    std::map<std::pair<Generator, std::string>, std::vector<std::pair<const Scheme*, std::string>>> all;
    for (const Scheme* sibling : schemes()) {
      if (sibling->family() != scheme.family() || sibling->find_layout(layout) == nullptr) continue;
      std::vector<Synthetic>& inputs = family.by_scheme[sibling] = dealt_inputs(kind, op, *sibling, layout);
      for (const Synthetic& input : inputs)
        all[{input.generator, input.activation}].emplace_back(sibling, input_name(input, op, layout));
    }
    // Each input family another scheme, so that no scheme stands for all.
    size_t turn = 0;
    for (const auto& [key, candidates] : all) family.chosen[key] = candidates[turn++ * 7 % candidates.size()];
    return family;
  }

  bool deals_by_family() const { return plan_.emulated_once || !plan_.once_a_family.empty(); }

  void add_inputs(Kind kind, Op op, const Scheme& scheme, std::string_view layout) {
    if (!deals_by_family()) {
      for (const Synthetic& input : dealt_inputs(kind, op, scheme, layout))
        add(synthetic_case(kind, op, scheme, layout, input));
      return;
    }
    const FamilyInputs& family = inputs_of_family(kind, op, scheme, layout);
    for (const Synthetic& input : family.by_scheme.at(&scheme)) {
      Case c = synthetic_case(kind, op, scheme, layout, input);
      const auto& chosen = family.chosen.at({input.generator, input.activation});
      const bool is_chosen = chosen.first == &scheme && chosen.second == c.id.input;
      const bool once = std::ranges::find(plan_.once_a_family, input.generator) != plan_.once_a_family.end();
      if (once && !is_chosen) continue;
      c.for_emulated = !plan_.emulated_once || is_chosen;
      add(std::move(c));
    }
  }

  void add_synthetic(Kind kind, const Scheme& scheme) {
    for (const Op op : kOps) {
      if (!filter_.may_take(kind, op, scheme) || !is_implemented(op, scheme)) continue;
      const bool packs = op == Op::pack || op == Op::unpack;
      for (const LayoutInfo& layout : scheme.layouts()) {
        if (packs == (layout.name == "plain")) continue;
        add_inputs(kind, op, scheme, layout.name);
        if (!packs) break;
      }
    }
  }

  // Random numbers of the first dtype that the scheme takes: its source, and the dense baseline's.
  static std::optional<WeightShape> latency_weight_of(const Scheme& scheme, int64_t n, int64_t k) {
    for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16})
      if (!scheme.refusal({dtype, n, k})) return WeightShape{dtype, n, k};
    return std::nullopt;
  }

  static bool wanted(const std::vector<std::string>& list, std::string_view word) {
    return list.empty() || listed(list, word);
  }

  void add_latency(const Scheme& scheme) {
    if (!wanted(plan_.latency_schemes, scheme.name())) return;
    for (const auto& [n, k] : plan_.latency_shapes) {
      const std::optional<WeightShape> weight = latency_weight_of(scheme, n, k);
      if (!weight) continue;
      for (const Op op : plan_.latency_ops)
        if (filter_.may_take(Kind::latency, op, scheme)) add_latency_op(scheme, *weight, op);
    }
  }

  void add_latency_op(const Scheme& scheme, const WeightShape& weight, Op op) {
    if (op == Op::pack || op == Op::unpack) {
      for (const LayoutInfo& layout : scheme.layouts())
        if (layout.name != "plain" && !scheme.refusal(weight, layout.name))
          add_timed(op, scheme, layout.name, {Generator::noise, weight, 1, 0});
    } else if (op == Op::linear || op == Op::quantize_activation) {
      for (const ActivationInfo& policy : scheme.activations()) {
        if (!wanted(plan_.latency_activations, policy.name)) continue;
        // A policy with scales of its own quantizes nothing anew that a dynamic one would not.
        if (op == Op::quantize_activation &&
            (policy.name == kWeightOnly || !scheme.policy_specs(weight, policy.name).empty()))
          continue;
        for (const int64_t m : plan_.latency_m)
          add_timed(op, scheme, "plain", {Generator::noise, weight, m, 0, std::string(policy.name)});
      }
    } else {
      add_timed(op, scheme, "plain", {Generator::noise, weight, 1, 0});
    }
  }

  void add_timed(Op op, const Scheme& scheme, std::string_view layout, const Synthetic& input) {
    for (const std::string& weights : plan_.latency_weights) {
      Case c = synthetic_case(Kind::latency, op, scheme, layout, input);
      c.warm = weights == "warm";
      c.id.input += "_" + weights;
      add(std::move(c));
    }
  }

  static Case synthetic_case(Kind kind, Op op, const Scheme& scheme, std::string_view layout,
                             const Synthetic& input) {
    Case c;
    c.id = {kind, op, std::string(scheme.name()), input_name(input, op, layout)};
    c.scheme = &scheme;
    c.synthetic = input;
    c.layout = layout;
    c.activation = input.activation;
    return c;
  }

  const Plan& plan_;
  const ExpandInputs& inputs_;
  const OfferTable& offers_;
  const IdFilter& filter_;
  std::map<const Scheme*, std::pair<size_t, size_t>> siblings_;  // its place in its family, and their number
  std::set<std::string> listed_;                                 // of the plan's cover
  std::map<std::string, const Golden*> first_;                   // of each scheme
  std::map<const Scheme*, GeneratorSupport> support_;
  std::map<std::tuple<Kind, Op, std::string, std::string>, FamilyInputs> families_;
  std::vector<Case> cases_;
};

}  // namespace

std::string golden_input(const std::string& golden_id, const std::string& scheme_name) {
  const Scheme* scheme = find_scheme(scheme_name);
  std::string out;
  for (size_t begin = 0; begin <= golden_id.size();) {
    const size_t end = std::min(golden_id.find('/', begin), golden_id.size());
    const std::string part = golden_id.substr(begin, end - begin);
    begin = end + 1;
    if (part == scheme_name || (scheme != nullptr && part == scheme->family())) continue;
    out += (out.empty() ? "" : "_") + slug(part);
  }
  return out.empty() ? slug(golden_id) : out;
}

std::vector<Case> expand(const Plan& plan, const ExpandInputs& inputs, const OfferTable& offers,
                         const IdFilter& filter) {
  return Expander(plan, inputs, offers, filter).run();
}

std::vector<OfferedCase> expand_offered(const Plan& plan, const ExpandInputs& inputs,
                                        const OfferTable& offers) {
  std::vector<OfferedCase> paired;
  for (const Case& c : expand(plan, inputs, offers))
    for (const Offer* offer : offers_for(c, plan, offers, inputs.with_reference))
      paired.push_back({c, offer, full_id(c, *offer)});
  std::ranges::sort(paired, {}, &OfferedCase::full_id);
  return paired;
}

std::vector<Case> expand(const Plan& plan, const CaseSources& sources, const Selection& selection) {
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
