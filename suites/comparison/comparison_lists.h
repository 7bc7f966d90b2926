// SPDX-License-Identifier: BSD-3-Clause
// The lists of a comparison with their names, in the order in which all its forms show them.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "suites/comparison/comparison.h"

namespace qcts {

// A list of cases whose status changed.
struct NamedList {
  const char *key, *title;
  std::vector<StatusChange> RunComparison::*list;
  bool is_worse;
};
inline constexpr NamedList kLists[] = {
    {"newly_failing", "newly failing", &RunComparison::newly_failing, true},
    {"gone", "gone", &RunComparison::gone, true},
    {"newly_not_supported", "newly not supported", &RunComparison::newly_not_supported, true},
    {"newly_inconclusive", "newly inconclusive", &RunComparison::newly_inconclusive, true},
    {"newly_robustness", "newly wrong on hostile inputs, which gates nothing",
     &RunComparison::newly_robustness, true},
    {"fixed", "fixed", &RunComparison::fixed, false},
    {"newly_supported", "newly supported", &RunComparison::newly_supported, false},
    {"new", "new", &RunComparison::added, false},
};
struct PaceList {
  const char *key, *title;
  std::vector<PaceChange> PaceComparison::*list;
  bool is_worse;
};
inline constexpr PaceList kPaceLists[] = {
    {"slower", "slower", &PaceComparison::slower, true},
    {"faster", "faster", &PaceComparison::faster, false},
    {"undecided", "slower or faster, but not to be trusted", &PaceComparison::undecided, true},
};

// The first `cut` entries, or all if `cut` is 0.
template <typename T>
std::span<const T> first_of(const std::vector<T>& list, size_t cut) {
  return std::span(list).first(cut == 0 ? list.size() : std::min(list.size(), cut));
}

}  // namespace qcts
