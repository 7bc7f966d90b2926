// Of which implementations a plan that times only the best takes the first.
#pragma once

#include <string>

#include "suites/case.h"

namespace qcts {

// The name of the group that `implementation` is in for this case: its provider's, or a part of it where no
// list of variants can know which is faster, or where many of those at the list's head refuse.
std::string rivals_of(const Case& c, const Implementation& implementation);

}  // namespace qcts
