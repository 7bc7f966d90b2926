// SPDX-License-Identifier: BSD-3-Clause
// The rows of a history: names of cases, words, and the states of cases. Only changes of states are stored.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "suites/history/database.h"
#include "suites/history/history.h"

namespace qcts {

// The texts of table `word` and their ids. All texts are read at once, so that the table needs no index of
// them.
class Words {
 public:
  explicit Words(Database& database);
  int64_t id_of(const std::string& text);  // adds the text if it is new

 private:
  Database& database_;
  Statement insert_;
  std::unordered_map<std::string, int64_t> ids_;
};

// The full ids of cases and their ids in the database, read in the same way.
class CaseNames {
 public:
  explicit CaseNames(Database& database);
  int64_t id_of(const std::string& name);
  Words& words() { return words_; }

 private:
  Database& database_;
  Words words_;
  Statement insert_;
  std::unordered_map<std::string, int64_t> ids_;
};

// Stores the cases that differ from the previous run of the series, and counts all.
HistoryRun write_states(Database& database, int64_t series, int64_t run, const std::vector<CaseState>& cases,
                        CaseNames& names);

// Returns the cases of a run without their paces, sorted by id.
std::vector<CaseState> read_states(Database& database, int64_t series, int64_t run);

// See History::scheme_nights().
SchemeNights read_scheme_nights(Database& database, int64_t series, const std::vector<HistoryRun>& runs);

}  // namespace qcts
