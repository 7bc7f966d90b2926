// SPDX-License-Identifier: BSD-3-Clause
// Does a failure name the fault that was planted? Mutants judged on one case each, and what the reason says.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace qcts::selftest {

// One line of mutants/explanations.inc.
struct Explanation {
  std::string_view faults;      // mutants, joined by '+'
  std::string_view case_id;     // of the complete plan
  std::string_view hypotheses;  // those that name what was planted, parted by '|'
  bool is_pair() const { return faults.find('+') != faults.npos; }
};

std::span<const Explanation> explanation_list();

struct Explained {
  Explanation asked;
  bool killed = false;
  std::string hypothesis;  // empty: none was named
  std::string reason;      // the failure's, or why there is none
  // One fault has to be named. Of two, one of them or none, and never another.
  bool right() const;
};

// Throws std::runtime_error when the library of mutants is missing, std::invalid_argument for an unknown
// mutant.
Explained explain(const Explanation& asked);

}  // namespace qcts::selftest
