// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/expand.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "suites/cases/input_sampler.h"
#include "suites/inputs/far_weight.h"
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

// Returns the scheme part of the id of a case that judges a whole golden. A scheme that only quantizes x
// makes no file another than plain.
std::string scheme_of(const Golden& golden) {
  std::set<std::string> names;
  for (const Golden::TensorInfo& tensor : golden.tensors) {
    const Scheme* scheme = find_scheme(tensor.scheme);
    if (!tensor.scheme.empty() && (scheme == nullptr || scheme->quantizes_weight()))
      names.insert(tensor.scheme);
  }
  if (names.empty()) return "plain";
  return names.size() == 1 ? *names.begin() : "mixed";
}

std::string tensor_slug(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (name.size() > kWeight.size() && name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  return slug(name);
}

bool listed(const std::vector<std::string>& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

// Does the golden have the data to judge this op? The planes of every tensor are in the file itself.
bool has_evidence(const Golden::TensorInfo& tensor, Op op) {
  const auto& have = tensor.expected;
  const bool weight = listed(have, "w") || tensor.w_seed.has_value();
  const bool packed = tensor.layout != kPlain.name() && !tensor.layout.empty();
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
      : plan_(plan), inputs_(inputs), offers_(offers), filter_(filter), sampler_(plan, inputs.seed) {
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
  // Keeps the case if the filter takes it and something can judge it.
  void add(Case c) {
    if (!filter_.may_take(c.id)) return;
    if (c.golden() != nullptr && is_left_out(*c.golden()) && !sampler_.listed().contains(c.id.text())) return;
    if (c.id.op == Op::file || may_be_offered(c, plan_, offers_, inputs_.with_reference))
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
        for (const Scheme* scheme : filter_.other_schemes()) add_synthetic(kind, *scheme);
        break;
      case Kind::latency:
        for (const Scheme* scheme : schemes()) add_latency(*scheme);
        break;
      case Kind::values:
        break;
    }
  }

  void add_file(Kind kind, const Golden& golden) {
    Case c;
    const std::string scheme = scheme_of(golden);
    c.id = {kind, Op::file, scheme, golden_input(golden.id, scheme)};
    c.scheme = find_scheme(scheme);
    c.question = FileQuestion{&golden};
    add(std::move(c));
  }

  void add_reject(const Malformed& malformed) {
    Case c;
    c.id = {Kind::reject, Op::file, "any", slug(malformed.id)};
    c.question = RejectQuestion{&malformed};
    add(std::move(c));
  }

  void add_golden_numerics(const Golden& golden) {
    std::set<std::string> slugs;
    for (size_t i = 0; i < golden.tensors.size(); ++i) {
      const Golden::TensorInfo& tensor = golden.tensors[i];
      std::string name = tensor_slug(tensor.name);
      if (!slugs.insert(name).second) name += "_t" + std::to_string(i);
      if (!tensor.kernel_scheme.empty()) add_joined_weight(golden, tensor, name);
      const Scheme* scheme = find_scheme(tensor.scheme);
      if (scheme == nullptr) continue;
      for (const Op op : kOps) {
        if (!has_evidence(tensor, op)) continue;
        Case c;
        c.id = {Kind::numerics, op, tensor.scheme, golden_input(golden.id, tensor.scheme) + "_" + name};
        c.scheme = scheme;
        TensorQuestion question{&golden, tensor.name};
        // The judge reports words of the manifest that the scheme does not know.
        if (op == Op::pack || op == Op::unpack)
          question.layout = scheme->find_layout(tensor.layout).value_or(kPlain);
        if (op == Op::linear || op == Op::quantize_activation)
          question.activation = scheme->find_activation(tensor.activation).value_or(kWeightOnly);
        c.question = std::move(question);
        add(std::move(c));
      }
    }
  }

  // A weight that another library packed, in the planes of a scheme.
  void add_joined_weight(const Golden& golden, const Golden::TensorInfo& tensor, const std::string& name) {
    const Scheme* scheme = find_scheme(tensor.kernel_scheme);
    if (scheme == nullptr)
      throw std::runtime_error(golden.id + ": " + tensor.name + ": no scheme " + tensor.kernel_scheme);
    Case c;
    c.scheme = scheme;
    const std::string input = golden_input(golden.id, tensor.kernel_scheme) + "_" + name;
    const auto ask = [&](Op op, Policy policy, const std::string& end) {
      c.id = {Kind::numerics, op, tensor.kernel_scheme, input + end};
      c.question = TensorQuestion{&golden, tensor.name, kPlain, policy};
      add(c);
    };
    ask(Op::dequantize, kWeightOnly, "");
    ask(Op::linear, kWeightOnly, "");
    // The files do not say how x is quantized. Some kernels serve a weight only under such a policy.
    for (const Policy policy : scheme->activations())
      if (policy != kWeightOnly && scheme->policy_specs({}, policy).empty())
        return ask(Op::linear, policy, "_" + std::string(policy.name()));
  }

  bool is_implemented(Op op, const Scheme& scheme) const {
    return std::ranges::any_of(offers_.find(op, scheme.family()), [&](const Offer* offer) {
      return inputs_.with_reference || offer->provider != kReferenceProvider;
    });
  }

  // Are there cases of this op and layout? "plain" for all but pack and unpack, and for linear each layout
  // that an offer reads.
  bool has_cases_in(Layout layout, Op op, const Scheme& scheme) const {
    if (op == Op::pack || op == Op::unpack) return layout != kPlain;
    if (layout == kPlain || op != Op::linear) return layout == kPlain;
    return std::ranges::any_of(offers_.find(op, scheme.family()),
                               [&](const Offer* offer) { return offer->reads(layout); });
  }

  void add_synthetic(Kind kind, const Scheme& scheme) {
    if (kind == Kind::numerics && listed(plan_.far_schemes, std::string(scheme.name())) &&
        filter_.may_take(kind, Op::linear, scheme))
      add(synthetic_case(kind, Op::linear, scheme, kPlain, *far_input(scheme)));
    for (const Op op : kOps) {
      if (!filter_.may_take(kind, op, scheme) || !is_implemented(op, scheme)) continue;
      for (const Layout layout : scheme.layouts())
        if (has_cases_in(layout, op, scheme))
          for (Case& c : sampler_.cases_of(kind, op, scheme, layout)) add(std::move(c));
    }
  }

  // Random numbers in the first dtype that the scheme accepts, for the quantized kernel and the dense
  // baseline.
  static std::optional<WeightShape> latency_weight_shape(const Scheme& scheme, int64_t n, int64_t k) {
    for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16})
      if (!scheme.refusal({dtype, n, k})) return WeightShape{dtype, n, k};
    return std::nullopt;
  }

  static bool wanted(const std::vector<std::string>& list, std::string_view word) {
    return list.empty() || listed(list, word);
  }

  void add_latency(const Scheme& scheme) {
    add_blocks(scheme);
    if (!wanted(plan_.latency_schemes, scheme.name())) return;
    for (const auto& [n, k] : plan_.latency_shapes) {
      const std::optional<WeightShape> weight = latency_weight_shape(scheme, n, k);
      if (!weight) continue;
      for (const Op op : plan_.latency_ops)
        if (filter_.may_take(Kind::latency, op, scheme)) add_latency_op(scheme, *weight, op);
    }
  }

  // One case for each m: the layers of a block are timed together, on weights that come from memory.
  void add_blocks(const Scheme& scheme) {
    const std::optional<LatencyBlocks>& blocks = plan_.latency_blocks;
    if (!blocks || !listed(blocks->schemes, scheme.name())) return;
    constexpr int64_t kWidth = 4096;
    const WeightShape first{DType::bfloat16, kWidth / blocks->shrink, kWidth / blocks->shrink};
    for (const int64_t m : blocks->m) {
      Case c;
      c.scheme = &scheme;
      c.question = BlockQuestion{{Generator::noise, first, m, 0}, blocks->shrink};
      c.id = {Kind::latency, Op::linear, std::string(scheme.name()), ""};
      c.id.input = "llama_8b_block_d" + std::to_string(blocks->shrink) + "_m" + std::to_string(m) + "_cold";
      add(std::move(c));
    }
  }

  void add_latency_op(const Scheme& scheme, const WeightShape& weight, Op op) {
    if (op == Op::pack || op == Op::unpack) {
      for (const Layout layout : scheme.layouts())
        if (layout != kPlain && !scheme.refusal(weight, layout))
          add_timed(op, scheme, layout, {Generator::noise, weight, 1, 0});
    } else if (op == Op::linear || op == Op::quantize_activation) {
      for (const Policy policy : scheme.activations()) {
        if (!wanted(plan_.latency_activations, policy.name())) continue;
        // Static policies are not timed: they quantize like the dynamic ones.
        if (op == Op::quantize_activation &&
            (policy == kWeightOnly || !scheme.policy_specs(weight, policy).empty()))
          continue;
        for (const int64_t m : plan_.latency_m)
          add_timed(op, scheme, kPlain, {Generator::noise, weight, m, 0, policy});
      }
    } else {
      add_timed(op, scheme, kPlain, {Generator::noise, weight, 1, 0});
    }
  }

  void add_timed(Op op, const Scheme& scheme, Layout layout, const Synthetic& input) {
    for (const std::string& weights : plan_.latency_cache_states) {
      Case c = synthetic_case(Kind::latency, op, scheme, layout, input);
      c.question = TimedQuestion{input, layout, weights == "warm"};
      c.id.input += "_" + weights;
      add(std::move(c));
    }
  }

  const Plan& plan_;
  const ExpandInputs& inputs_;
  const OfferTable& offers_;
  const IdFilter& filter_;
  InputSampler sampler_;
  std::map<std::string, const Golden*> first_;  // by scheme
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

}  // namespace qcts
