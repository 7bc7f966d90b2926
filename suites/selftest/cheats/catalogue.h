// SPDX-License-Identifier: BSD-3-Clause
// The catalogue: each cheat with its honest twin, the published patterns that it stands for, and the finding
// that has to name it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "suites/selftest/cheats/finding.h"

namespace qcts::cheats {

struct Cheat {
  std::string_view id;       // of the library with its habit
  std::string_view twin;     // the habit of an honest kernel that looks like it
  FindingId finding;         // that must name the cheat
  std::string_view cases;    // ids on which both are judged, separated by spaces
  std::string_view pattern;  // numbers of the README's table
  std::string_view what;     // what it does, as the end of a sentence
  double least_us = 0;       // a call takes at least this; only for cheats that change their clock
  bool is_timed() const { return cases.starts_with("latency."); }
};

std::span<const Cheat> catalogue();
// Returns true for the words that the pattern column may have: "1" to "17" and names of exploit programs.
bool is_known_pattern(std::string_view word);

}  // namespace qcts::cheats
