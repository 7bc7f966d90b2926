// SPDX-License-Identifier: BSD-3-Clause
// A known failure, with a place where it is discussed and a day on which it stops being excused. A waived
// case still runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/verdict.h"

namespace qcts {

struct Waiver {
  std::string case_glob;             // over case_id; * and ?
  std::string provider;              // exact
  std::string issue;                 // URL
  std::string added, expires;        // YYYY-MM-DD, the last day included
  std::vector<std::string> matched;  // full ids that it excused or that passed in spite of it
  bool expired = false;
  int64_t age_days = 0, days_left = 0;
};

// {"schema": 1, "waivers": [{"case", "provider", "issue", "added", "expires"}]}; unknown keys are refused.
// Throws std::runtime_error naming the entry and the field.
std::vector<Waiver> load_waivers(const std::filesystem::path& path, const std::string& today);

// fail, weak_evidence, crash, timeout and resource become waived, pass becomes xpass; the reason keeps what
// happened.
void apply_waivers(std::vector<Waiver>& waivers, Verdict& verdict);

std::string today_utc();  // YYYY-MM-DD
int64_t days_between(const std::string& from,
                     const std::string& to);  // throws std::runtime_error for what is no date

// * matches any run of characters, ? one; the whole text.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace qcts
