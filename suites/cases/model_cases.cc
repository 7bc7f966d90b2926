// SPDX-License-Identifier: BSD-3-Clause
// The cases on the layers of a model.
#include <algorithm>
#include <map>
#include <set>

#include "suites/base/run_error.h"
#include "suites/cases/input_sampler.h"
#include "suites/cases/model.h"
#include "suites/inputs/inputs.h"
#include "suites/inputs/layer_input.h"
#include "suites/providers/reference_provider.h"

namespace qcts {
namespace {

constexpr size_t kMaxSchemes = 4;  // of a family, unless the selection names them

template <typename Value>
bool is_in(const std::vector<Value>& list, const Value& value) {
  return std::ranges::find(list, value) != list.end();
}

bool is_offered(const OfferTable& offers, const Scheme& scheme, Policy policy) {
  return std::ranges::any_of(offers.find(Op::linear, scheme.family()), [&](const Offer* offer) {
    return offer->provider != kReferenceProvider && offer->takes(policy) && offer->reads(kPlain);
  });
}

bool has_policy(const OfferTable& offers, const Scheme& scheme) {
  return std::ranges::any_of(scheme.activations(),
                             [&](Policy policy) { return is_offered(offers, scheme, policy); });
}

// Returns the same scheme with groups of this length: "intx_b4_g96_sym" of "intx_b4_g32_sym".
const Scheme* with_group(const Scheme& scheme, int64_t group) {
  std::string name(scheme.name());
  const std::string own = "_g" + std::to_string(scheme.group());
  const size_t at = name.find(own);
  if (at == name.npos) return nullptr;
  return find_scheme(name.replace(at, own.size(), "_g" + std::to_string(group)));
}

// Returns the schemes that a group length of the model makes of this one; itself if it has no groups, or the
// model names none.
std::vector<const Scheme*> with_groups(const Scheme& scheme, const Model& model) {
  if (scheme.group() == 0 || model.groups.empty()) return {&scheme};
  std::vector<const Scheme*> found;
  for (const int64_t group : model.groups)
    if (const Scheme* other = group == scheme.group() ? &scheme : with_group(scheme, group))
      found.push_back(other);
  return found;
}

std::vector<const Scheme*> schemes_of(const Model& model, const OfferTable& offers,
                                      const Selection& selection) {
  if (!selection.schemes.empty()) {
    std::vector<const Scheme*> named;
    for (const std::string& name : selection.schemes)
      if (const Scheme* scheme = find_scheme(name); scheme && has_policy(offers, *scheme))
        named.push_back(scheme);
    return named;
  }
  std::map<std::string_view, std::vector<const Scheme*>> families;
  for (const Scheme* listed : schemes()) {
    if (!has_policy(offers, *listed)) continue;
    if (listed->quantizes_weight() && !model.bits.empty() && !is_in(model.bits, listed->params().bits))
      continue;
    for (const Scheme* scheme : with_groups(*listed, model))
      if (std::vector<const Scheme*>& known = families[listed->family()]; !is_in(known, scheme))
        known.push_back(scheme);
  }
  std::vector<const Scheme*> all;
  for (const auto& [family, fitting] : families) {
    if (fitting.size() > kMaxSchemes)
      throw UsageError("--model: " + std::to_string(fitting.size()) + " schemes of " + std::string(family) +
                       " fit this model, such as " + std::string(fitting.front()->name()) + " and " +
                       std::string(fitting.back()->name()) + "; choose one with --scheme");
    all.insert(all.end(), fitting.begin(), fitting.end());
  }
  return all;
}

std::string size_text(const Model::Layer& layer) {
  return layer.names + " (n " + std::to_string(layer.n) + ", k " + std::to_string(layer.k) + ")";
}

// The model's dtype, or another one if the scheme does not accept it.
std::optional<WeightShape> accepted(const Scheme& scheme, const Model& model, const Model::Layer& layer) {
  for (const DType dtype : {model.dtype, DType::bfloat16, DType::float32, DType::float16})
    if (!scheme.refusal({dtype, layer.n, layer.k})) return WeightShape{dtype, layer.n, layer.k};
  return std::nullopt;
}

class ModelCaseList {
 public:
  ModelCaseList(const Model& model, const OfferTable& offers) : model_(model), offers_(offers) {}

  void add(const Scheme& scheme) {
    for (const Model::Layer& layer : model_.layers) {
      const std::optional<WeightShape> weight = accepted(scheme, model_, layer);
      if (!weight)
        leave_out(std::string(scheme.name()) + " of " + size_text(layer) + ": " +
                  scheme.refusal({model_.dtype, layer.n, layer.k}).value_or(""));
      else
        add_layer(scheme, layer, *weight);
    }
  }
  ModelCases take() && { return std::move(made_); }

 private:
  void add_layer(const Scheme& scheme, const Model::Layer& layer, const WeightShape& weight) {
    for (const Policy policy : scheme.activations()) {
      if (!is_offered(offers_, scheme, policy)) continue;
      for (const int64_t m : kLayerRows) {
        if (const std::optional<Synthetic> input = layer_input(scheme, policy, weight, m))
          made_.cases.push_back(synthetic_case(Kind::numerics, Op::linear, scheme, kPlain, *input));
        else if (layer.n > kMaxLayerWeights / layer.k)
          leave_out(size_text(layer) + ": more than 2^28 weights");
        else
          leave_out(size_text(layer) + " with m " + std::to_string(m) +
                    ": more than 2^24 outputs or 2^35 products");
      }
    }
  }
  void leave_out(const std::string& what) {
    if (!is_in(made_.left_out, what)) made_.left_out.push_back(what);
  }

  const Model& model_;
  const OfferTable& offers_;
  ModelCases made_;
};

std::string list_of(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

}  // namespace

ModelCases model_cases(const Model& model, const OfferTable& offers, const Selection& selection) {
  ModelCaseList list(model, offers);
  for (const Scheme* scheme : schemes_of(model, offers, selection)) list.add(*scheme);
  ModelCases made = std::move(list).take();
  if (!made.cases.empty()) return made;
  std::string why = "--model: no linear kernel fits this " + model.type;
  if (!model.groups.empty()) why += " with groups of " + list_of(model.groups);
  if (!model.bits.empty())
    why += " and codes of " + list_of({model.bits.begin(), model.bits.end()}) + " bits";
  for (const std::string& each : made.left_out) why += "; " + each;
  throw UsageError(why + "; choose a scheme with --scheme, or sizes with --filter");
}

std::optional<Case> layer_case(const CaseId& id) {
  if (id.kind != Kind::numerics || id.op != Op::linear) return std::nullopt;
  const Scheme* scheme = find_scheme(id.scheme);
  if (scheme == nullptr) return std::nullopt;
  const std::optional<Synthetic> input = find_layer_input(*scheme, id.input);
  if (!input) return std::nullopt;
  return synthetic_case(id.kind, id.op, *scheme, kPlain, *input);
}

}  // namespace qcts
