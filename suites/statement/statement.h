// SPDX-License-Identifier: BSD-3-Clause
// Makes the statement of a finished run, which its vendor can hand to anyone.
#pragma once

#include <filesystem>
#include <string>

namespace qcts {

struct StatementRequest {
  std::filesystem::path run;  // the folder of a run, or its record
  std::string vendor, product;
  std::filesystem::path key, out;  // empty: unsigned; statement.json in the folder of the run
};

// Writes a DSSE envelope around an in-toto statement and returns what to tell the user.
// Throws Failure, which says why, for a run that was narrowed, unfinished, failed, partial or not isolated.
// Throws UsageError for a run of another version, and for a key that others may read.
std::string make_statement(const StatementRequest& request);

}  // namespace qcts
