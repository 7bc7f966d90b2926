// SPDX-License-Identifier: BSD-3-Clause
// Finds what a provider offers but no case asks, such as a kernel with a name that is not
// known here. Without this, it would be dropped silently.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "suites/cases/offers.h"

namespace qcts {

struct UnknownNames {
  // "linear of turbo: no scheme 'int8_rows' (did you mean 'int8_row'?)", once for each name of an offer.
  std::vector<std::string> lines;
  // The lines about kernels that no case of any plan can ask, whether their names are known or not.
  std::vector<std::string> never_asked;
};
UnknownNames unknown_names(std::span<const Offer> offers);

}  // namespace qcts
