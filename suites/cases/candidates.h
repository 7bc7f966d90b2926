// SPDX-License-Identifier: BSD-3-Clause
// The cases that a run chooses from, each with the providers that judge it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fixtures/golden.h"
#include "suites/cases/expand.h"
#include "suites/cases/selection/selection.h"

namespace qcts {

class Candidates {
 public:
  // `slot_of` has the index of each provider's slot, by name. `ask` answers for builtin kernels. `seed` is
  // that of the run. The first three arguments must outlive this object.
  Candidates(const Fixtures& fixtures, const OfferTable& offers, const std::map<std::string, size_t>& slot_of,
             AskSupport ask, uint64_t seed);

  // Adds the cases of `plan` that the selection may take. Fixtures and offers must be complete by then.
  void add(const Plan& plan, const Selection& selection);
  // Adds the cases of `plan`, and the layers of any size, that a filter of the selection names exactly and
  // that are not there yet.
  void add_exact(const Plan& plan, const Selection& selection);
  // Adds layers of a model (suites/cases/model.h) that are not there yet. `plan` chooses the variants.
  void add_layers(const Plan& plan, std::vector<Case> layers);
  // Adds the cases of `plan` on which the provider of `slot` is asked these operations and schemes, unless
  // they are there already.
  using Served = std::set<std::pair<Op, const Scheme*>>;
  void add_served(const Plan& plan, size_t slot, const Served& served);

  const std::vector<Candidate>& all() const { return candidates_; }  // Candidate::index is for case_of()
  // Adds "not_asked" to each provider that `selection` would ask more cases if it declared
  // "representable_inputs".
  void count_not_asked(const Selection& selection, nlohmann::ordered_json& providers) const;
  // Returns "representable (scale: draws ..)", or "-" for a file.
  std::string input_text(const Candidate& candidate) const;
  const Case& case_of(const Candidate& candidate) const { return cases_[candidate.index]; }

 private:
  void add_paired(std::vector<PairedCase> paired);

  const Fixtures& fixtures_;
  const OfferTable& offers_;
  const std::map<std::string, size_t>& slot_of_;
  AskSupport ask_;
  uint64_t seed_;
  std::vector<Case> cases_;
  std::vector<Candidate> candidates_, undeclared_;
};

// Returns the first provider with "not_asked", or nullptr.
const nlohmann::ordered_json* with_cases_not_asked(const nlohmann::ordered_json& providers);

}  // namespace qcts
