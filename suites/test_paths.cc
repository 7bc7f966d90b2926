// SPDX-License-Identifier: BSD-3-Clause
#include "suites/test_paths.h"

namespace qcts {

std::filesystem::path source_path(std::string_view below) {
  return std::filesystem::path(QCTS_SOURCE_DIR) / below;
}

std::filesystem::path build_path(std::string_view below) {
  return std::filesystem::path(QCTS_BINARY_DIR) / below;
}

}  // namespace qcts
