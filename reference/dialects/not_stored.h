// SPDX-License-Identifier: BSD-3-Clause
// Judges the names that torchao's metadata lists but the files do not hold.
#pragma once

#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Adds a note for each name in Checkpoint::left_out that may be missing: a tied weight whose other name is
// stored, or one that transformers never saves. config.json says what is tied. Without it, only an output
// embedding may be. Adds a finding for any other name, or a note if the options are lenient.
void judge_not_stored(Checkpoint& checkpoint, const OpenOptions& options);

// Returns true if the finding is about a name that is listed and not stored.
bool is_about_not_stored(const Checkpoint& checkpoint, const CheckpointFinding& finding);

// Returns the names in memory of the tensors that are stored, in their order.
std::vector<std::string> names_in_memory(const Checkpoint& checkpoint);

}  // namespace qcts
