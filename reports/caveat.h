// SPDX-License-Identifier: BSD-3-Clause
// Findings of a judge in addition to whether the answer is right, and the status that follows from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qcts {

struct Verdict;

enum class Caveat : uint8_t {
  unnoticed_change,  // a slightly wrong answer would have passed too
  code_not_run,      // load and save kept a program's contents, but no run of it is recorded
  copied_bytes,      // part of the rebuilt file is a copy, about which equal bytes (E3) prove nothing
  hostile_input,     // no library means this input, and the provider promises no right answer to it
  harm,              // the provider did what could damage its host; no input excuses that
  overrun,           // harm that may have damaged anything: its process must not judge further cases
  // These say what a failed kernel did, if the judge recognizes it. They change no status.
  wrote_nothing,        // the output still held what it held before the call
  stopped_writing,      // the same in a later call, after a right first answer
  left_earlier_answer,  // the same for an output that held another answer before
  wrote_part,           // exactly the wrong elements still held what they held before
  wrote_later,          // the output changed after the call had returned
  same_everywhere,      // every element of the answer is the same
  copied_input,         // the answer is x
  earlier_answer,       // the answer that an earlier call gave to other data at the same addresses
  narrow_sum,           // the weights are right, but sums of two products are not
  refused_by_values,    // supports() refuses the data and accepts others at the same addresses
};
inline constexpr int kCaveatCount = static_cast<int>(Caveat::refused_by_values) + 1;
std::string_view caveat_name(Caveat caveat);
std::optional<Caveat> caveat_from_name(std::string_view name);

struct VerdictFinding {
  Caveat caveat = Caveat::unnoticed_change;
  std::string text;  // one sentence, or empty if the verdict's reason says it
};

// The use that a verdict is put to.
enum class Purpose : uint8_t {
  conformance,  // a run states what a provider has proved
  check,        // a user asks whether one file is good
};

// Turns the judge's status (pass, fail, ...) into the final one by the verdict's caveats.
// pass: an unnoticed change makes it weak_evidence. Code that was not run and copied bytes do so for
// conformance only: they do not make a user's file worse.
// fail: a hostile input makes it robustness, unless the provider did harm.
void conclude(Verdict& verdict, Purpose purpose);

}  // namespace qcts
