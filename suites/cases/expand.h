// SPDX-License-Identifier: BSD-3-Clause
// Expands a plan and goldens into cases. The functions are pure, and call kernels only through AskSupport.
// The same arguments give the same sorted cases with unique ids.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "suites/cases/case.h"
#include "suites/cases/offers.h"
#include "suites/cases/plan.h"
#include "suites/cases/selection/id_filter.h"

namespace qcts {

// Returns the input name of the case that judges a whole golden under `scheme`.
// The input name is the golden's id without the scheme.
// For "torchao_0_18_0/int8_row/toy" and int8_row, the name is "torchao_0_18_0_toy".
// Cases on one tensor append "_NAME".
std::string golden_input(const std::string& golden_id, const std::string& scheme);

struct ExpandInputs {
  std::span<const Golden> goldens;
  std::span<const Malformed> malformed;
  // If true, the reference runs on synthetic inputs too.
  // The reference is then compared with itself, which tests the cases: they must not fail it.
  bool with_reference = false;
  uint64_t seed = 0;  // of the run, from which problems are drawn (suites/inputs/drawn.h)
};

// Returns the cases of `plan` that `filter` may take and that an offer or the suite itself can judge.
// may_be_offered() decides whether an offer can. The cases have no implementations and are sorted by id.
// Throws std::runtime_error if two cases share an id or an id has a character outside the alphabet.
std::vector<Case> expand(const Plan& plan, const ExpandInputs& inputs, const OfferTable& offers,
                         const IdFilter& filter = {});

// The rest of this header pairs cases with offers. Plans that take only the best variants need answers from
// builtin kernels. `ask` is called at most once, with all questions. It is never called for offers of other
// providers.

struct PairedCase {
  Case asked;
  std::vector<const Offer*> offers;  // offers in the table, best first; may be empty for a file
  // Offers that are not asked because their provider does not declare "representable_inputs".
  std::vector<const Offer*> undeclared = {};
};
// Returns the cases of expand() that are files or have offers of either kind, in the order of expand().
std::vector<PairedCase> expand_paired(const Plan& plan, const ExpandInputs& inputs, const OfferTable& offers,
                                      const AskSupport& ask, const IdFilter& filter = {});
// The same for cases that the caller has.
std::vector<PairedCase> pair_cases(std::vector<Case> cases, const Plan& plan, const OfferTable& offers,
                                   const AskSupport& ask, bool with_reference);

// A case and one offer that judges it, for programs that use a worker.
struct OfferedCase {
  Case asked;
  const Offer* offer = nullptr;  // one of the offers in the table
  std::string full_id;
};
// Returns the cases sorted by full id.
std::vector<OfferedCase> expand_offered(const Plan& plan, const ExpandInputs& inputs,
                                        const OfferTable& offers, const AskSupport& ask);

// The inputs for programs that judge in their own process.
// Expansion then gives one case for each implementation of `registry`, sorted by full id.
struct RegistryInputs {
  std::span<const Golden> goldens;
  std::span<const Malformed> malformed;
  const Registry* registry = nullptr;
  bool with_reference = false;
};
std::vector<Case> expand(const Plan& plan, const RegistryInputs& sources, const Selection& selection = {});

}  // namespace qcts
