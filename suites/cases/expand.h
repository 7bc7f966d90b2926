// From a plan, goldens and kernels to cases. expand() is pure: the same arguments give the same sorted cases
// with unique ids.
#pragma once

#include <span>
#include <vector>

#include "suites/cases/case.h"
#include "suites/cases/plan.h"

namespace qcts {

struct CaseSources {
  std::span<const Golden> goldens;
  std::span<const Malformed> malformed;
  const Registry* registry = nullptr;
  // Synthetic inputs for the reference as well, whose own answers they are wanted to have: that says nothing
  // of the reference, but of the cases, which must not accuse it.
  bool reference_too = false;
};
// Sorted by full_id, which is unique. Throws std::runtime_error when two cases share a full_id or an id
// leaves the alphabet.
std::vector<Case> expand(const Plan& plan, const CaseSources& sources);

}  // namespace qcts
