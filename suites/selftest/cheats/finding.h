// SPDX-License-Identifier: BSD-3-Clause
// The closed list of what a judge can find that a cheat did, and how verdicts say it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/verdict.h"

namespace qcts::cheats {

enum class FindingId : uint8_t {
  nothing,                // everything passed
  computes_nothing,       // the output was not written
  reach_refused,          // the same, and every attempt to reach the judge was refused
  tampers_in_vain,        // the same, and what it changed in its own process changed no verdict
  answers_out_of_turn,    // wrote to the judge what the judge had not asked for
  constant_answer,        // every element is the same
  copies_input,           // the answer is x
  skips_part,             // some elements were not written
  skips_terms,            // products are missing from the sums
  skips_calls,            // right in the first call, and a later one wrote nothing
  leaves_earlier_answer,  // wrote nothing where the output looked like an answer
  remembers_answer,       // answered other data at the same addresses as the data before
  remembers_weight,       // right on other x at the same addresses, wrong on another weight
  changes_later,          // wrote to its output after its return
  leaves_child,           // left a child process running after its answer
  writes_input,
  narrow_accumulation,    // the weights are right, and sums are kept in too few bits
  bounds_nothing,         // declares so much rounding that a changed code would have passed
  refuses_what_it_fails,  // refuses by values what it accepts by type and shape
  too_many_threads,       // kept more threads busy than the call allows
  wrong_while_timed,      // right wherever a single answer is judged, wrong where many calls are timed
  honest_clock_kept,      // changed its own clock, and the time reported is the real one
  other,                  // a fail that names none of these
};
inline constexpr int kFindingCount = static_cast<int>(FindingId::other) + 1;
std::string_view finding_name(FindingId finding);
std::optional<FindingId> finding_from_name(std::string_view name);

// A cheat's attempt to act outside its call, as it wrote it to its worker's log.
struct Attempt {
  std::string what;
  bool was_done = false;
  std::string how;  // "done", or "refused: Permission denied"
};
// Reads the lines "attempt: WHAT: done" and "attempt: WHAT: refused: WHY" of a log, each once.
std::vector<Attempt> attempts_in(std::string_view log);

// Returns what one verdict says the kernel did. `least_us` is the minimum time of each of its calls, for
// cheats that change their clock; 0 for the others.
FindingId finding_of(const Verdict& verdict, std::span<const Attempt> attempts = {}, double least_us = 0);
// Returns the finding of the first verdict that has one.
FindingId finding_of(std::span<const Verdict> verdicts, std::span<const Attempt> attempts = {},
                     double least_us = 0);

}  // namespace qcts::cheats
