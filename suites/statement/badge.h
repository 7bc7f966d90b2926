// SPDX-License-Identifier: BSD-3-Clause
// A statement in short, for a vendor's README.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qcts {

// Writes badge.svg and badge.md next to a statement, and returns their paths. badge.md has the claim in the
// words of the run's last line, the library with its SHA-256, when and by which qcts it was judged, who
// signed, and how to check it. Throws Failure, which names the field, for a statement that `qcts verify`
// refuses, and UsageError if the file cannot be read.
std::vector<std::filesystem::path> write_statement_badge(const std::filesystem::path& statement);

}  // namespace qcts
