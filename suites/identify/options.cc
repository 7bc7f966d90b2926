// SPDX-License-Identifier: BSD-3-Clause
#include "suites/identify/options.h"

#include <algorithm>
#include <optional>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/choices/other_recipes.h"

namespace qcts {
namespace {

using Changed = std::function<KernelInput(const KernelInput&)>;

bool has_equal_planes(const std::vector<PlaneSpec>& a, const std::vector<PlaneSpec>& b) {
  return std::ranges::equal(a, b, [](const PlaneSpec& x, const PlaneSpec& y) {
    return x.name == y.name && x.dtype == y.dtype && x.bytes() == y.bytes();
  });
}

// True if the first plane of layout "plain" has two codes in each byte.
bool holds_halves(const KernelInput& like) {
  const std::vector<PlaneSpec> specs = like.scheme->plane_specs(like.weight);
  return !specs.empty() &&
         specs[0].bytes() * 2 == static_cast<uint64_t>(like.weight.n) * static_cast<uint64_t>(like.weight.k);
}

std::string_view other_order(const KernelInput& like) {
  const std::string codes = like.scheme->plane_specs(like.weight)[0].name;
  return like.scheme->element_of(like.weight, codes, 0, 0) % 2 == 0 ? "nibble_even_high" : "nibble_even_low";
}

Planes swapped(Planes planes) {
  for (std::byte& byte : planes.at(0).bytes) byte = byte << 4 | byte >> 4;
  return planes;
}

class LinearOptions {
 public:
  explicit LinearOptions(const KernelInput& like) : like_(like), scheme_(*like.scheme) {}

  std::vector<IdentifyOption> all() && {
    const std::string asked(scheme_.name());
    add(asked + of_policy(like_.activation), "", [](const KernelInput& input) { return input; });
    add_policies(asked);
    add_siblings();
    if (scheme_.quantizes_weight() && holds_halves(like_)) {
      const std::string_view order = other_order(like_);
      add(asked + " by " + std::string(order), order, [](KernelInput input) {
        input.planes = swapped(std::move(input.planes));
        return input;
      });
    }
    return std::move(options_);
  }

 private:
  static std::string of_policy(Policy policy) { return ", " + std::string(policy.name()); }

  void add(std::string name, std::string_view choice, const Changed& changed) {
    IdentifyOption option;
    option.name = std::move(name);
    option.choice = choice;
    option.play = [changed](const KernelInput& input) {
      const KernelInput other = changed(input);
      const std::vector<double> sums = LinearReference(other).sums();
      KernelAnswer answer;
      answer.y.resize(sums.size() * dtype_bytes(input.y_dtype));
      for (size_t i = 0; i < sums.size(); ++i) store_float(input.y_dtype, answer.y, i, sums[i]);
      return answer;
    };
    option.bounds = [changed](const KernelInput& input, const LinearStages& stages) {
      const KernelInput other = changed(input);
      return LinearReference(other).bounds(stages);
    };
    options_.push_back(std::move(option));
  }

  // Policies that need no planes in addition to the weight's.
  void add_policies(const std::string& asked) {
    for (const Policy policy : scheme_.activations())
      if (policy != like_.activation && scheme_.policy_specs(like_.weight, policy).empty())
        add(asked + of_policy(policy), choice_of_policy(policy), [policy](KernelInput input) {
          input.activation = policy;
          return input;
        });
  }

  void add_siblings() {
    const std::vector<PlaneSpec> specs = scheme_.plane_specs(like_.weight);
    for (const Scheme* other : schemes()) {
      if (other->family() != scheme_.family() || other->meaning() == scheme_.meaning() ||
          other->refusal(like_.weight) || !has_equal_planes(other->plane_specs(like_.weight), specs))
        continue;
      const std::optional<Policy> policy = other->find_activation(like_.activation.name());
      if (!policy) continue;
      add(std::string(other->name()) + of_policy(*policy), "", [other, policy](KernelInput input) {
        input.scheme = other;
        input.activation = *policy;
        return input;
      });
    }
  }

  const KernelInput& like_;
  const Scheme& scheme_;
  std::vector<IdentifyOption> options_;
};

class PackOptions {
 public:
  explicit PackOptions(const KernelInput& like) : like_(like), scheme_(*like.scheme) {}

  std::vector<IdentifyOption> all() && {
    const std::vector<PlaneSpec> specs = scheme_.plane_specs(like_.weight, like_.layout);
    add_layout(like_.layout);
    for (const LayoutInfo& info : scheme_.layouts()) {
      const Layout layout = scheme_.layout_named(info.name);
      if (layout != like_.layout && !scheme_.refusal(like_.weight, layout) &&
          has_equal_planes(scheme_.plane_specs(like_.weight, layout), specs))
        add_layout(layout);
    }
    if (holds_halves(like_)) add_other_order();
    return std::move(options_);
  }

 private:
  void add(std::string name, std::string_view choice, std::function<Planes(const KernelInput&)> planes) {
    IdentifyOption option;
    option.name = std::move(name);
    option.choice = choice;
    option.play = [planes = std::move(planes)](const KernelInput& input) {
      return KernelAnswer{{}, planes(input)};
    };
    options_.push_back(std::move(option));
  }

  void add_layout(Layout layout) {
    add(std::string(layout.name()), "", [scheme = &scheme_, layout](const KernelInput& input) {
      if (layout == kPlain) return input.planes;
      return input.op == Op::pack ? scheme->pack(input.planes, input.weight, layout)
                                  : scheme->unpack(input.planes, input.weight, layout);
    });
  }

  void add_other_order() {
    const std::string_view order = other_order(like_);
    add(std::string(like_.layout.name()) + " by " + std::string(order), order,
        [scheme = &scheme_](const KernelInput& input) {
          return input.op == Op::pack ? scheme->pack(swapped(input.planes), input.weight, input.layout)
                                      : swapped(scheme->unpack(input.planes, input.weight, input.layout));
        });
    options_.back().is_order = true;
  }

  const KernelInput& like_;
  const Scheme& scheme_;
  std::vector<IdentifyOption> options_;
};

}  // namespace

std::vector<IdentifyOption> identify_options(const KernelInput& like) {
  if (like.op == Op::linear) return LinearOptions(like).all();
  if (like.op == Op::pack || like.op == Op::unpack) return PackOptions(like).all();
  std::vector<IdentifyOption> options;
  for (RecipeOption& option : recipe_options(like)) options.push_back({std::move(option), {}});
  return options;
}

}  // namespace qcts
