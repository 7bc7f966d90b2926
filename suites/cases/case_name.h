// A case by its names alone, as the parent of the workers knows it.
#pragma once

#include <string>

namespace qcts {

// The provider name of cases that judge files.
inline constexpr const char* kFileProvider = "qcts";

struct CaseName {
  std::string id, full_id;
  std::string variant;  // empty for cases that judge files
};

}  // namespace qcts
