// SPDX-License-Identifier: BSD-3-Clause
// Chooses a plan's synthetic inputs: all of them, or a sample.
// A sample is spread over schemes and families of schemes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "suites/cases/case.h"
#include "suites/cases/plan.h"
#include "suites/inputs/inputs.h"

namespace qcts {

inline constexpr Op kOps[] = {Op::quantize, Op::quantize_activation, Op::dequantize, Op::linear, Op::pack,
                              Op::unpack};

// Returns the case of one synthetic input, without an implementation.
Case synthetic_case(Kind kind, Op op, const Scheme& scheme, Layout layout, const Synthetic& input);

class InputSampler {
 public:
  // `plan` must outlive the sampler. `seed` is that of the drawn problems.
  explicit InputSampler(const Plan& plan, uint64_t seed = 0);

  // Returns the cases of one (kind, operation, scheme, layout).
  // The cases depend only on the plan, so a filter does not change the sample. A scheme that is not listed
  // has no siblings to share inputs with, and gets all.
  std::vector<Case> cases_of(Kind kind, Op op, const Scheme& scheme, Layout layout);

  // The ids in the plan's cover.
  const std::set<std::string>& listed() const { return listed_; }

 private:
  struct Siblings {
    size_t place = 0, count = 0;  // place of a scheme in its family, and the family's size
  };
  // The inputs of one family of schemes for a (kind, op, layout).
  // `chosen` has the input that was chosen for each key. `turn` counts the keys of a policy.
  struct Choice {
    const Scheme* scheme;
    std::string input;
    size_t turn;
  };
  // Input family, policy, whether the weight is tall, and whether the dtype differs from the family's.
  using ChoiceKey = std::tuple<Generator, Policy, bool, bool>;
  struct FamilyInputs {
    std::map<const Scheme*, std::vector<Synthetic>> by_scheme;
    std::map<ChoiceKey, Choice> chosen;
  };

  ChoiceKey choice_key(const Synthetic& input) const;
  bool samples_by_family(Kind kind) const;
  bool is_once_a_family(Kind kind, Generator generator) const;
  bool is_limited(const Synthetic& input) const;
  void limit_inputs(const std::vector<std::vector<Synthetic>*>& by_scheme) const;
  bool is_for_emulated(Kind kind, const Synthetic& input, bool is_chosen, size_t turn) const;
  bool is_sampled(Kind kind, Op op, const Scheme& scheme, size_t index, size_t count) const;
  std::vector<Synthetic> sampled_inputs(Kind kind, Op op, const Scheme& scheme, Layout layout);
  const FamilyInputs& inputs_of_family(Kind kind, Op op, const Scheme& scheme, Layout layout);

  const Plan& plan_;
  const uint64_t seed_;
  std::set<std::string> listed_;
  std::map<const Scheme*, Siblings> siblings_;
  std::map<const Scheme*, GeneratorSupport> support_;
  std::map<std::tuple<Kind, Op, std::string, Layout>, FamilyInputs> families_;
};

}  // namespace qcts
