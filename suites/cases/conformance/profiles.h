// SPDX-License-Identifier: BSD-3-Clause
// Profiles: sets of mustpass cases that a provider promises to serve (qcts_provider.profile).
// Each family of schemes is a profile with the same name, with all its operations and policies.
// suites/profiles.json names more. A profile may set options of the ledger in place of those that the schemes
// follow. The expected answers are then computed with these options.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fixtures/golden.h"
#include "reference/schemes/choices/other_recipes.h"
#include "reports/case_id.h"

namespace qcts {

struct Profile {
  std::string name, about;
  std::vector<std::string> families;
  std::vector<std::string> schemes;   // globs over names of schemes; empty: all of the families
  std::vector<Op> ops;                // empty: all
  std::vector<std::string> policies;  // empty: all
  std::vector<std::string> options;   // ids of options of the ledger; empty: those that the schemes follow

  bool has(Op op, const Scheme& scheme) const;  // with some policy
};

std::filesystem::path profiles_file();  // suites/profiles.json, below the program's root
// Returns the profiles of the families and those of a file, by name. Throws std::runtime_error, which names
// the file and the entry, for a key, family, operation or policy that is unknown, and for a name that is
// taken.
std::vector<Profile> load_profiles(const std::filesystem::path& file);

// Returns the profiles that `words`, separated by spaces, name. Throws std::runtime_error for an unknown
// name, with the nearest known one.
std::vector<Profile> profiles_named(std::string_view words, const std::vector<Profile>& known);

// The recipes that the profiles of one provider set.
class PlayedProfiles {
 public:
  PlayedProfiles() = default;
  // Throws std::runtime_error if two profiles have a scheme in common and set different options for it.
  explicit PlayedProfiles(const std::vector<Profile>& profiles);

  const std::vector<std::string>& options() const { return options_; }  // sorted
  // Returns nullptr if the scheme's own recipe holds. The result lives as long as this object.
  const PlayedRecipe* recipe(Op op, const Scheme& scheme) const;

 private:
  std::vector<std::string> options_;
  std::map<std::pair<Op, const Scheme*>, PlayedRecipe> recipes_;
};

// Returns the ids of `mustpass` that are in one of the profiles, sorted. Files are in none.
std::vector<std::string> profile_cases(const std::vector<Profile>& profiles,
                                       const std::vector<std::string>& mustpass, const Fixtures& fixtures);

}  // namespace qcts
