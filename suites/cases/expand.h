// SPDX-License-Identifier: BSD-3-Clause
// From a plan and goldens to cases. Pure: the same arguments give the same sorted cases with unique ids, and
// no provider is asked anything.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "suites/cases/case.h"
#include "suites/cases/id_filter.h"
#include "suites/cases/offers.h"
#include "suites/cases/plan.h"

namespace qcts {

// The input of the case that judges a golden under `scheme` as a whole: its id without the scheme's own name,
// "torchao_0_18_0_toy" of "torchao_0_18_0/int8_row/toy" below int8_row. For one tensor, "_NAME" follows.
std::string golden_input(const std::string& golden_id, const std::string& scheme);

struct ExpandInputs {
  std::span<const Golden> goldens;
  std::span<const Malformed> malformed;
  // Synthetic inputs for the reference as well, whose own answers they are expected to have: that proves
  // nothing of the reference, but of the cases, which must not accuse it.
  bool with_reference = false;
};

// The cases of `plan` that `filter` may take and that an offer, or the suite itself, can judge; without an
// implementation, sorted by id. Throws std::runtime_error when two cases share an id or an id leaves the
// alphabet.
std::vector<Case> expand(const Plan& plan, const ExpandInputs& inputs, const OfferTable& offers,
                         const IdFilter& filter = {});

// The same paired with the offers that judge them, sorted by full id: for programs that ask a worker. Of the
// cases that the suite judges itself, none.
struct OfferedCase {
  Case asked;
  const Offer* offer = nullptr;  // of the table
  std::string full_id;
};
std::vector<OfferedCase> expand_offered(const Plan& plan, const ExpandInputs& inputs,
                                        const OfferTable& offers);

// The same paired with the implementations of `registry`, one case for each, sorted by full id: for programs
// that judge in their own process.
struct CaseSources {
  std::span<const Golden> goldens;
  std::span<const Malformed> malformed;
  const Registry* registry = nullptr;
  bool with_reference = false;
};
std::vector<Case> expand(const Plan& plan, const CaseSources& sources, const Selection& selection = {});

}  // namespace qcts
