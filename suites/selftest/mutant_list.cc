// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/mutant_list.h"

#include <algorithm>
#include <vector>

namespace qcts::selftest {
namespace {

constexpr bool open = false, held = true;

std::vector<MutantInfo> make_list() {
  std::vector<MutantInfo> list = {
#define QCTS_MUTANT(kind, id, set, what, public_case) {#id, MutantKind::kind, set, what, public_case},
#include "suites/selftest/mutants/mutants.inc"
#undef QCTS_MUTANT
  };
#define QCTS_EQUIVALENT(name, why) std::ranges::find(list, #name, &MutantInfo::id)->proof = why;
#include "suites/selftest/mutants/equivalent.inc"
#undef QCTS_EQUIVALENT
#define QCTS_BYTES_ALONE(name, why) std::ranges::find(list, #name, &MutantInfo::id)->bytes_alone = why;
#include "suites/selftest/mutants/bytes_alone.inc"
#undef QCTS_BYTES_ALONE
#define QCTS_FOUND(name, what_was_missing) \
  std::ranges::find(list, #name, &MutantInfo::id)->found = what_was_missing;
#include "suites/selftest/mutants/held_back.inc"
#undef QCTS_FOUND
  return list;
}

}  // namespace

std::span<const MutantInfo> mutant_list() {
  static const std::vector<MutantInfo> list = make_list();
  return list;
}

const MutantInfo* find_mutant(std::string_view id) {
  const auto found = std::ranges::find(mutant_list(), id, &MutantInfo::id);
  return found == mutant_list().end() ? nullptr : &*found;
}

}  // namespace qcts::selftest
