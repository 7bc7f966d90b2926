// SPDX-License-Identifier: BSD-3-Clause
// Profiles: sets of mustpass cases that a provider promises to serve (qcts_provider.profile).
// Each family of schemes is a profile of its own name, with all its operations and policies.
// suites/profiles.json names further ones.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fixtures/golden.h"
#include "reports/case_id.h"

namespace qcts {

struct Profile {
  std::string name, about;
  std::vector<std::string> families;
  std::vector<Op> ops;                // empty: all
  std::vector<std::string> policies;  // empty: all
};

std::filesystem::path profiles_file();  // suites/profiles.json, below the program's root
// Returns the profiles of the families and those of a file, by name. Throws std::runtime_error, which names
// the file and the entry, for a key, family, operation or policy that is unknown, and for a name that is
// taken.
std::vector<Profile> load_profiles(const std::filesystem::path& file);

// Returns the profiles that `words`, separated by spaces, name. Throws std::runtime_error for an unknown
// name, with the nearest known one.
std::vector<Profile> profiles_named(std::string_view words, const std::vector<Profile>& known);

// Returns the ids of `mustpass` that are in one of the profiles, sorted. Files are in none.
std::vector<std::string> profile_cases(const std::vector<Profile>& profiles,
                                       const std::vector<std::string>& mustpass, const Fixtures& fixtures);

}  // namespace qcts
