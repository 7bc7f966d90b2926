// SPDX-License-Identifier: BSD-3-Clause
// The choices ledger: places where real implementations disagree. Each entry is a question with an id; a
// scheme declares its answer by standing in one of the options, with the evidence. A provider may declare
// another answer only where the entry is open.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace qcts {

struct ChoiceOption {
  std::string_view id;        // "int8_range_127_5": manifests and providers name it
  std::string_view answer;    // one line
  std::string_view schemes;   // names or families of schemes of this list that answer so, separated by blanks
  std::string_view who;       // other implementations that answer so: read in their sources, not run
  std::string_view evidence;  // package, version, file and function; or the golden that shows it
};

struct ChoiceEntry {
  std::string_view id;        // "int8_range"
  std::string_view question;  // one line
  bool open = false;          // a provider may answer otherwise than the scheme and still conform
  std::vector<ChoiceOption> options;
};

std::span<const ChoiceEntry> choice_ledger();
// The options in which a scheme stands, by its name or its family, in ledger order.
std::vector<const ChoiceOption*> choices_of(std::string_view scheme, std::string_view family);

// Documented claims that are not, or no longer, true.
struct StaleClaim {
  std::string_view id, claim, source, fact, evidence;
};
std::span<const StaleClaim> stale_claims();

// Layouts of files that are read, inspected and saved byte for byte, and that nothing here dequantizes.
struct KeptLayout {
  std::string_view name, holds, written_by, why, evidence;
};
std::span<const KeptLayout> kept_layouts();

}  // namespace qcts
