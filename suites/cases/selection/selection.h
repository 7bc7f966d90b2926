// SPDX-License-Identifier: BSD-3-Clause
// Selects cases of a plan. `run`, `list` and their hints use the same rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suites/cases/selection/case_name.h"

namespace qcts {

struct Selection {
  // An exact case id or full id selects only itself; for a case id, that means all its implementations.
  // Anything else is a glob that may match anywhere in the full id.
  // A case is selected if any filter matches.
  std::vector<std::string> filters;
  std::vector<std::string> excludes;  // as filters; a case that any of them matches is not selected
  std::vector<std::string> kinds, schemes;
  std::string variant;
  uint32_t shard = 1, shards = 1;  // case i of the sorted full list goes to shard i % shards + 1

  bool is_everything() const;
};

// Parses "2/8" as shard 2 of 8. Throws std::runtime_error.
void parse_shard(const std::string& text, Selection& selection);

struct Candidate {
  CaseName name;
  size_t slot = 0;   // index of the judging provider in the caller's list
  size_t index = 0;  // index of the case in the caller's list
};

// Returns true if any candidate has exactly this id, with or without its implementation.
bool names_exactly(const std::string& filter, const std::vector<Candidate>& candidates);

// Returns the selected candidates, sorted by full id. Sharding applies after all other rules.
std::vector<Candidate> select(const Selection& selection, std::vector<Candidate> candidates);

// Returns the candidate id that is nearest to a filter that selected nothing.
// Returns a case id if the filter names no implementation. Returns "" if no id is near.
std::string nearest_id(const std::string& filter, const std::vector<Candidate>& candidates);

}  // namespace qcts
