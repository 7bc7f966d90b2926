// SPDX-License-Identifier: BSD-3-Clause
// Checks the names in an archive's directory.
#pragma once

#include <string>
#include <vector>

#include "reference/formats/refusal.h"
#include "reference/formats/zip/directory.h"

namespace qcts {

// Returns the folder that all names share.
// Throws Refused (EntryName) for a name that is too long, not a plain relative path, or outside that folder.
// Throws Refused (DuplicateEntry) for two names that are equal ignoring case.
std::string check_zip_names(const std::vector<ZipEntry>& entries, const Limits& limits);

}  // namespace qcts
