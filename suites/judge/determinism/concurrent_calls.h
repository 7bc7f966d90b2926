// SPDX-License-Identifier: BSD-3-Clause
// Two threads that call a kernel at the same time, each with its own problem and outputs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "suites/cases/case.h"
#include "suites/judge/expected/judged_problem.h"
#include "suites/judge/judge.h"

namespace qcts {

inline constexpr size_t kCallers = 2;

struct ConcurrentFault {
  size_t caller;
  KernelAnswer answer;
  Mismatch mismatch;
  bool is_alone;  // true: wrong while no other call ran
};

enum class Overlap : uint8_t {
  some,           // calls one by one: cheap, but a round trip takes longer than a small call
  in_batches,     // several calls in a row without the judge in between
  from_the_first  // the same in a process that has computed nothing
};

// Lets each caller call its problem several times, while the other does. But for `from_the_first`, each
// problem is called once before, with no other call running. Returns the first wrong answer, if any.
// `problems` have to be supported.
std::optional<ConcurrentFault> fault_of_concurrent_calls(
    const qcts_kernel& kernel, const std::array<const JudgedProblem*, kCallers>& problems, Overlap overlap);

// Returns the problem with -2x instead of x (-x where that overflows); without an x, with the planes of
// another seed, where the case has any.
TestVector with_other_data(const Case& c, const JudgeContext& context, const KernelInput& input);

}  // namespace qcts
