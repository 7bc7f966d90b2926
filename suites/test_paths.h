// SPDX-License-Identifier: BSD-3-Clause
// Paths for tests. CMake includes this header before every file of qcts_tests.
// They are functions and not macros of the command line, so that a second checkout compiles from the first
// one's cache.
#pragma once

#include <filesystem>
#include <string_view>

namespace qcts {

std::filesystem::path source_path(std::string_view below);  // of a file in the source tree
std::filesystem::path build_path(std::string_view below);   // of a file in the build folder

}  // namespace qcts
