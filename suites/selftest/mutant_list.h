// SPDX-License-Identifier: BSD-3-Clause
// The mutants by name. What each one does wrong stands beside the fault: providers and files in
// suites/selftest/mutants, parts of the judge in suites/selftest/exam_mutants.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace qcts::selftest {

// What a mutant is a fault of.
enum class MutantKind : uint8_t { kernel, format, comparator, runner, merge, bench };
std::string_view mutant_kind_name(MutantKind kind);
std::optional<MutantKind> find_mutant_kind(std::string_view name);
// Parts of the judge, which questions examine; the others are judged as anyone's work.
inline constexpr MutantKind kExaminedKinds[] = {MutantKind::comparator, MutantKind::runner, MutantKind::merge,
                                                MutantKind::bench};

struct MutantInfo {
  std::string_view id;
  MutantKind kind;
  bool held = false;  // kept from everyone who shaped a case until the cases stood
  std::string_view what;
  std::string_view public_case;  // where it was seen; empty: a plausible slip
  std::string_view found{};      // of a held one: what it showed when the cases stood; empty: they caught it
  std::string_view bytes_alone{};  // of a file mutant: why only a claim to keep the bytes makes it wrong
  std::string_view proof{};        // why no judge can tell it from a right implementation; empty: it can
};
std::span<const MutantInfo> mutant_list();
const MutantInfo* find_mutant(std::string_view id);

}  // namespace qcts::selftest
