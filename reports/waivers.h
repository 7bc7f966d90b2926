// SPDX-License-Identifier: BSD-3-Clause
// Waivers are known failures, each with an issue URL and an expiry date. A waived case still runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/verdict.h"

namespace qcts {

struct Waiver {
  std::string case_glob;             // glob over case_id, with * and ?
  std::string provider;              // exact
  std::string issue;                 // URL
  std::string added, expires;        // YYYY-MM-DD; `expires` is the last valid day
  std::vector<std::string> matched;  // full ids of cases that it excused, or that passed anyway
  bool expired = false;
  int64_t age_days = 0, days_left = 0;
};

// Loads {"schema": 1, "waivers": [{"case", "provider", "issue", "added", "expires"}]}. Refuses unknown keys.
// Throws std::runtime_error that names the entry and the field.
std::vector<Waiver> load_waivers(const std::filesystem::path& path, const std::string& today);

// Turns fail, weak_evidence, crash, timeout and resource into waived, and pass into xpass.
// The reason keeps the original status.
void apply_waivers(std::vector<Waiver>& waivers, Verdict& verdict);

std::string today_utc();  // YYYY-MM-DD
int64_t days_between(const std::string& from,
                     const std::string& to);  // throws std::runtime_error for an invalid date

// Matches the whole text. * matches any run of characters, and ? matches a single character.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace qcts
