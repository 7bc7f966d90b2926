// SPDX-License-Identifier: BSD-3-Clause
// Recognizes, by their first bytes, files that are not a checkpoint that this project reads.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace qcts {

// Describes a file that this project does not read and says which file to pass instead:
// "a git-lfs pointer, not the file itself: ...".
// Returns "" for files that are read and for unknown ones.
// Formats without a signature are recognized by the ending of `name`.
std::string foreign_file(std::span<const std::byte> bytes, std::string_view name);

// Returns the text to append to "FILE is not JSON": ", but ..." with the file's real type.
// Returns "" if the file starts like JSON.
std::string instead_of_json(std::span<const std::byte> bytes, std::string_view name);

// Describes a zip archive that a reader has refused, by the names of its records.
std::string foreign_zip(std::span<const std::byte> bytes);

}  // namespace qcts
