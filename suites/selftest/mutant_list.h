// SPDX-License-Identifier: BSD-3-Clause
// Lists the mutants by name. The faults of providers and files are in suites/selftest/mutants.
// The faults of the judge's parts are in suites/selftest/exam_mutants.cc.
#pragma once

#include <span>
#include <string_view>

#include "suites/cases/mutant_kind.h"

namespace qcts::selftest {

// These kinds are parts of the judge, which exams test.
// Mutants of the other kinds are judged like any other provider or file.
inline constexpr MutantKind kExaminedKinds[] = {MutantKind::comparator, MutantKind::runner, MutantKind::merge,
                                                MutantKind::bench};

struct MutantInfo {
  std::string_view id;
  MutantKind kind;
  bool held = false;  // true if it was hidden from the authors of the cases until the cases were done
  std::string_view what;
  std::string_view public_case;    // the place where this fault occurred; empty: a plausible mistake
  std::string_view found{};        // if held: the gap that it revealed in the cases; empty: none
  std::string_view bytes_alone{};  // for a file mutant: why only a claim to keep the bytes makes it wrong
  std::string_view proof{};  // why no judge can tell it from a correct implementation; empty: a judge can
};
std::span<const MutantInfo> mutant_list();
const MutantInfo* find_mutant(std::string_view id);

}  // namespace qcts::selftest
