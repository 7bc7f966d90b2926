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

// The texts of one table and their ids. All are read at once, so that the table needs no index of its texts.
class TextTable {
 public:
  // `table` has the columns "id" and `column`.
  TextTable(Database& database, const std::string& table, const std::string& column);
  int64_t id_of(const std::string& text);  // adds the text if it is new

 private:
  Database& database_;
  Statement insert_;
  std::unordered_map<std::string, int64_t> ids_;
};

class CaseNames : public TextTable {
 public:
  explicit CaseNames(Database& database) : TextTable(database, "case_name", "name") {}
};

// Stores the cases that differ from the previous run of the series, and counts all.
HistoryRun write_states(Database& database, int64_t series, int64_t run, const std::vector<CaseState>& cases,
                        CaseNames& names);

// Returns the cases of a run without their paces, sorted by id.
std::vector<CaseState> read_states(Database& database, int64_t series, int64_t run);

}  // namespace qcts
