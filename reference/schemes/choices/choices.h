// SPDX-License-Identifier: BSD-3-Clause
// Choices: places where real implementations disagree. Each entry is a question with an id.
// A scheme answers the question by being listed in one of the options, which gives the evidence.
// A provider may answer differently only if the entry is open.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace qcts {

struct ChoiceOption {
  std::string_view id;        // "int8_range_127_5", as manifests and providers name it
  std::string_view answer;    // one line
  std::string_view schemes;   // schemes or families that give this answer, separated by spaces
  std::string_view who;       // other implementations with this answer; read, not run
  std::string_view evidence;  // package, version, file and function, or the golden that shows it
};

struct ChoiceEntry {
  std::string_view id;        // "int8_range"
  std::string_view question;  // one line
  bool open = false;          // a provider may answer differently and still conform
  std::vector<ChoiceOption> options;
};

std::span<const ChoiceEntry> choice_ledger();
// Returns the options that list a scheme, by its name or its family, in order.
std::vector<const ChoiceOption*> choices_of(std::string_view scheme, std::string_view family);

// A documented claim that is not true, or no longer true.
struct StaleClaim {
  std::string_view id, claim, source, fact, evidence;
};
std::span<const StaleClaim> stale_claims();

// A layout of files that are read, inspected and saved byte for byte, but not dequantized.
struct KeptLayout {
  std::string_view name, holds, written_by, why, evidence;
};
std::span<const KeptLayout> kept_layouts();

}  // namespace qcts
