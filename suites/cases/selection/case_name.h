// SPDX-License-Identifier: BSD-3-Clause
// The names of a case. The parent of the workers keeps nothing else about it.
#pragma once

#include <string>

#include "reports/case_id.h"

namespace qcts {

// The provider name of cases that judge files.
inline constexpr const char* kFileProvider = "qcts";

struct CaseName {
  CaseId id;
  std::string full_id;
  std::string variant;  // empty for cases that judge files
};

}  // namespace qcts
