// SPDX-License-Identifier: BSD-3-Clause
// Files that are no checkpoint here, known by their first bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace qcts {

// What the bytes are and what to give instead: "a git-lfs pointer, not the file that it stands for: ...".
// Empty for everything that is read here or not known. `name` tells formats without a signature by its
// ending.
std::string foreign_file(std::span<const std::byte> bytes, std::string_view name);

// Behind "FILE is not JSON": ", but ..." for what it is instead; empty where it begins as JSON does.
std::string instead_of_json(std::span<const std::byte> bytes, std::string_view name);

// The same for a zip archive that a reader has refused, by the names of its records.
std::string foreign_zip(std::span<const std::byte> bytes);

}  // namespace qcts
