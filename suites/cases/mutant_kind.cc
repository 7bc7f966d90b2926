// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/mutant_kind.h"

namespace qcts {

std::string_view mutant_kind_name(MutantKind kind) {
  switch (kind) {
    case MutantKind::kernel:
      return "kernel";
    case MutantKind::cuda:
      return "cuda";
    case MutantKind::format:
      return "format";
    case MutantKind::comparator:
      return "comparator";
    case MutantKind::runner:
      return "runner";
    case MutantKind::merge:
      return "merge";
    case MutantKind::bench:
      return "bench";
  }
  return {};
}

std::optional<MutantKind> find_mutant_kind(std::string_view name) {
  for (const MutantKind kind :
       {MutantKind::kernel, MutantKind::cuda, MutantKind::format, MutantKind::comparator, MutantKind::runner,
        MutantKind::merge, MutantKind::bench})
    if (mutant_kind_name(kind) == name) return kind;
  return std::nullopt;
}

}  // namespace qcts
