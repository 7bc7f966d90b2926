// SPDX-License-Identifier: BSD-3-Clause
// Tells the judge where a forbidden access was, before it ends the process.
#pragma once

#include <cstdint>

namespace qcts {

// From now on, the address of a forbidden access is written to `note`, which must outlive the process's
// calls, and its stack to standard error, the innermost call last. The access then ends the process.
void note_forbidden_accesses(uint64_t& note);

}  // namespace qcts
