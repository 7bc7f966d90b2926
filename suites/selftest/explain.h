// SPDX-License-Identifier: BSD-3-Clause
// Checks that a failure's reason names the planted fault, by judging mutants on one case each.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace qcts::selftest {

// One line of mutants/explanations.inc.
struct Explanation {
  std::string_view faults;      // mutants, joined by '+'
  std::string_view case_id;     // id of a case in the complete plan
  std::string_view hypotheses;  // hypotheses that name a planted fault, separated by '|'
  bool is_pair() const { return faults.find('+') != faults.npos; }
};

std::span<const Explanation> explanation_list();

struct Explained {
  Explanation asked;
  bool killed = false;
  std::string hypothesis;  // empty: the reason names no hypothesis
  std::string reason;      // reason of the failure, or why there is none
  // Returns true if the hypothesis is right. A single fault must be named.
  // For two faults, one of them or none may be named, but never another.
  bool right() const;
};

// Judges one case. Throws std::runtime_error if the library of mutants is missing.
// Throws std::invalid_argument for an unknown mutant.
Explained explain(const Explanation& asked);

}  // namespace qcts::selftest
