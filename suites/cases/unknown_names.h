// SPDX-License-Identifier: BSD-3-Clause
// Finds what a provider offers under names that nothing here has: such kernels would be dropped in silence.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "suites/cases/offers.h"

namespace qcts {

struct UnknownNames {
  // "linear of turbo: no scheme 'int8_rows' (did you mean 'int8_row'?)", once for each name of an offer.
  std::vector<std::string> lines;
  bool are_all = false;  // no offer has a scheme, and for x a policy, that is known
};
UnknownNames unknown_names(std::span<const Offer> offers);

}  // namespace qcts
