// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/recipe_options.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "reference/schemes/choices/other_recipes.h"

namespace qcts {
namespace {

bool is_equal_spec(const PlaneSpec& a, const PlaneSpec& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape;
}

KernelAnswer planes_answer(Planes planes) { return {{}, std::move(planes)}; }

Matrix weight_matrix(const KernelInput& input) {
  return {input.weight.dtype, input.weight.n, input.weight.k, input.x};
}

bool has_two_codes_a_byte(const Scheme& scheme, const WeightShape& shape) {
  const std::vector<PlaneSpec> specs = scheme.plane_specs(shape);
  return !specs.empty() && specs[0].name == "qdata" &&
         specs[0].bytes() * 2 == static_cast<uint64_t>(shape.n * shape.k);
}

Planes with_swapped_nibbles(Planes planes) {
  for (std::byte& byte : planes[0].bytes) byte = byte << 4 | byte >> 4;
  return planes;
}

class Options {
 public:
  explicit Options(const KernelInput& like) : like_(like), scheme_(*like.scheme) {}

  std::vector<RecipeOption> all() && {
    if (like_.op == Op::quantize) add_quantize();
    if (like_.op == Op::quantize_activation) add_policies();
    if (like_.op == Op::dequantize) add_dequantize();
    return std::move(options_);
  }

 private:
  std::string by(std::string_view choice) const {
    return std::string(scheme_.name()) + " by " + std::string(choice);
  }

  void add(std::string name, std::string_view choice, std::function<KernelAnswer(const KernelInput&)> play) {
    options_.push_back({std::move(name), std::string(choice), std::move(play)});
  }

  // Other schemes whose planes have the same names, types and shapes.
  std::vector<const Scheme*> siblings() const {
    std::vector<const Scheme*> found;
    const std::vector<PlaneSpec> specs = scheme_.plane_specs(like_.weight);
    for (const Scheme* other : schemes())
      if (other != &scheme_ && other->quantizes_weight() && !other->refusal(like_.weight) &&
          std::ranges::equal(other->plane_specs(like_.weight), specs, is_equal_spec))
        found.push_back(other);
    return found;
  }

  void add_nibbles(std::function<KernelAnswer(const KernelInput&)> play) {
    const bool is_low = scheme_.element_of(like_.weight, "qdata", 0, 0) % 2 == 0;
    const std::string_view choice = is_low ? "nibble_even_high" : "nibble_even_low";
    add(by(choice), choice, std::move(play));
    options_.back().is_order = true;
  }

  void add_quantize() {
    const Layout layout = like_.layout;
    add(std::string(scheme_.name()), "", [this_scheme = &scheme_, layout](const KernelInput& input) {
      return planes_answer(this_scheme->quantize(weight_matrix(input), layout));
    });
    for (const Scheme* other : siblings())
      add(std::string(other->name()), "",
          [other](const KernelInput& input) { return planes_answer(other->quantize(weight_matrix(input))); });
    for (OtherRecipe& other : other_recipes(scheme_))
      add(other.choice.empty() ? std::string(scheme_.name()) + ", " + std::string(other.words)
                               : by(other.choice),
          other.choice, [quantize = std::move(other.quantize)](const KernelInput& input) {
            return planes_answer(quantize(weight_matrix(input)));
          });
    if (has_two_codes_a_byte(scheme_, like_.weight))
      add_nibbles([scheme = &scheme_](const KernelInput& input) {
        return planes_answer(with_swapped_nibbles(scheme->quantize(weight_matrix(input))));
      });
  }

  void add_policies() {
    const std::vector<PlaneSpec> specs = scheme_.activation_specs(like_.x_matrix(), like_.activation);
    const auto add_policy = [&](const Scheme& scheme, Policy policy, const std::string& name) {
      try {
        if (!std::ranges::equal(scheme.activation_specs(like_.x_matrix(), policy), specs, is_equal_spec))
          return;
      } catch (const std::exception&) {  // the scheme does not take this x
        return;
      }
      add(name, choice_of_policy(policy), [&scheme, policy](const KernelInput& input) {
        return planes_answer(scheme.quantize_activation(input.x_matrix(), policy, input.planes));
      });
    };
    add_policy(scheme_, like_.activation, std::string(like_.activation.name()));
    for (const Policy policy : scheme_.activations())
      if (policy != kWeightOnly && policy != like_.activation &&
          scheme_.policy_specs(like_.weight, policy).empty())
        add_policy(scheme_, policy, std::string(policy.name()));
    std::vector<std::string> known;
    for (const RecipeOption& option : options_) known.push_back(option.name);
    for (const Scheme* other : schemes())
      for (const Policy policy : other->activations()) {
        const bool is_known = std::ranges::find(known, policy.name()) != known.end();
        if (policy == kWeightOnly || is_known || other->refusal(like_.weight) ||
            !other->policy_specs(like_.weight, policy).empty())
          continue;
        known.emplace_back(policy.name());
        add_policy(*other, policy, std::string(policy.name()) + " of " + std::string(other->name()));
      }
  }

  void add_dequantize() {
    add(std::string(scheme_.name()), "", [scheme = &scheme_](const KernelInput& input) {
      return KernelAnswer{scheme->dequantize(input.planes, input.weight), {}};
    });
    for (const Scheme* other : siblings())
      if (other->family() == scheme_.family() && other->meaning() != scheme_.meaning())
        add(std::string(other->name()), "", [other](const KernelInput& input) {
          return KernelAnswer{other->dequantize(input.planes, input.weight), {}};
        });
    if (has_two_codes_a_byte(scheme_, like_.weight))
      add_nibbles([scheme = &scheme_](const KernelInput& input) {
        return KernelAnswer{scheme->dequantize(with_swapped_nibbles(input.planes), input.weight), {}};
      });
    for (OtherMeaning& other : other_meanings(scheme_))
      add(by(other.choice), other.choice,
          [dequantize = std::move(other.dequantize)](const KernelInput& input) {
            return KernelAnswer{dequantize(input.planes, input.weight), {}};
          });
  }

  const KernelInput& like_;
  const Scheme& scheme_;
  std::vector<RecipeOption> options_;
};

}  // namespace

std::vector<RecipeOption> recipe_options(const KernelInput& like) { return Options(like).all(); }

}  // namespace qcts
