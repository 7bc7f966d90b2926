// SPDX-License-Identifier: BSD-3-Clause
// Recognizes what a kernel did instead of its work, from an answer that is wrong.
#pragma once

#include <cstdint>
#include <optional>

#include "reports/caveat.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {

// A call whose answer is wrong.
struct WrongCall {
  const KernelInput& input;
  KernelRun& run;
  const KernelAnswer& answer;              // as it was read when the call had returned
  Poison poison;                           // the outputs' contents before the call
  const KernelAnswer* previous = nullptr;  // for Poison::previous
  uint64_t wrong_elems = 0;
  bool is_first = true;  // false: calls before it were right
};

// Returns what the kernel did, with a sentence part for the reason ("y was not written"); nullopt if that
// is not recognized. If an output was not written, waits a moment and looks at it again, then calls
// the kernel once more over other contents: a wrong element may equal what was there.
std::optional<VerdictFinding> conduct_of(const WrongCall& call);

// Finds a sum that is kept in too few bits: runs the kernel with all but two elements of each row of x zeroed
// and without bias. Returns nullopt if these answers are right. Call this only if one-hot rows give the right
// weights. Never throws because of the kernel.
std::optional<VerdictFinding> narrow_sum(const qcts_kernel& kernel, const KernelInput& input,
                                         const LinearStages& stages, uint32_t threads);

}  // namespace qcts
