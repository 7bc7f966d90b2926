// SPDX-License-Identifier: BSD-3-Clause
// Judges cheats and their honest twins as `qcts run` judges a library: a worker, and an isolated host.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "suites/selftest/cheats/catalogue.h"

namespace qcts::cheats {

// The verdicts on one library.
struct Judged {
  std::vector<Verdict> verdicts;
  std::vector<Attempt> attempts;
  std::string isolation;  // "isolated", or what the library could reach
  std::string problem;    // the reason why it could not be judged; empty if it was
};

enum class Fault : uint8_t { on, off };
// Judges the library with that habit on the cases, whose ids are separated by spaces. Throws
// std::runtime_error if the library is missing and RunError if no case has such an id.
Judged judged(std::string_view habit, std::string_view cases, Fault fault = Fault::on);

struct CheatRow {
  const Cheat* cheat = nullptr;
  Judged of_cheat, of_twin;
  FindingId found = FindingId::nothing;
  bool is_named() const { return of_cheat.problem.empty() && found == cheat->finding; }
  bool twin_passed() const;
};

// Judges the cheats whose ids match one of the globs, or all if there are no globs, and calls `on_row` after
// each. A twin of several cheats is judged once for the same cases.
std::vector<CheatRow> judge_cheats(const std::vector<std::string>& globs,
                                   const std::function<void(const CheatRow&)>& on_row);
bool selects_any(const std::vector<std::string>& globs);

// Returns the table as text: one line per row, and the verdict below each row that does not hold.
std::string text_of(const CheatRow& row);
// "39 of 39 named, 39 of 39 honest twins passed"
std::string score_text(const std::vector<CheatRow>& rows);
nlohmann::ordered_json to_json(const std::vector<CheatRow>& rows);
bool all_hold(const std::vector<CheatRow>& rows);

}  // namespace qcts::cheats
