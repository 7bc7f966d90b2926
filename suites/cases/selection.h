// SPDX-License-Identifier: BSD-3-Clause
// Which cases of a plan a run takes. The same rules for `run`, `list` and their hints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suites/cases/case_name.h"

namespace qcts {

struct Selection {
  // An exact case id or full id takes only itself (a case id: all its implementations); anything else is a
  // glob that may match anywhere in the full id. Several are joined by "or".
  std::vector<std::string> filters;
  std::vector<std::string> kinds, schemes;
  std::string variant;
  uint32_t shard = 1, shards = 1;  // case i of the sorted full list goes to shard i % shards + 1

  bool is_everything() const;
};

// "2/8" -> shard 2 of 8; throws std::runtime_error.
void parse_shard(const std::string& text, Selection& selection);

struct Candidate {
  CaseName name;
  size_t source = 0;  // the provider that judges it, as an index of the caller's list
  size_t index = 0;   // of the caller's list of cases
};

// Does any candidate have exactly this id, with or without its implementation?
bool names_exactly(const std::string& filter, const std::vector<Candidate>& candidates);

// The chosen ones, sorted by full id. Sharding counts what the other rules left.
std::vector<Candidate> select(const Selection& selection, std::vector<Candidate> candidates);

// For a filter that chose nothing: the candidate id that is nearest to it, a case id where the filter names
// no implementation. Empty when none is near.
std::string nearest_id(const std::string& filter, const std::vector<Candidate>& candidates);

}  // namespace qcts
