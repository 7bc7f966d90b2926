// SPDX-License-Identifier: BSD-3-Clause
// The mutants by name. The faults themselves are in suites/selftest/mutants (providers and files) and in
// suites/selftest/exam_mutants.cc (parts of the judge).
#pragma once

#include <span>
#include <string_view>

#include "suites/cases/mutant_kind.h"

namespace qcts::selftest {

// Parts of the judge, which exams test; mutants of the other kinds are judged like any other provider or
// file.
inline constexpr MutantKind kExaminedKinds[] = {MutantKind::comparator, MutantKind::runner, MutantKind::merge,
                                                MutantKind::bench};

struct MutantInfo {
  std::string_view id;
  MutantKind kind;
  bool held = false;  // hidden from the authors of the cases until the cases were done
  std::string_view what;
  std::string_view public_case;    // where this fault occurred; empty: a plausible mistake
  std::string_view found{};        // if held: the gap that it showed in the cases; empty: none
  std::string_view bytes_alone{};  // of a file mutant: why only a claim to keep the bytes makes it wrong
  std::string_view proof{};  // why no judge can tell it from a correct implementation; empty: a judge can
};
std::span<const MutantInfo> mutant_list();
const MutantInfo* find_mutant(std::string_view id);

}  // namespace qcts::selftest
