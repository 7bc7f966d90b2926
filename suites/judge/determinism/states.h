// SPDX-License-Identifier: BSD-3-Clause
// Judges a kernel that has seen other data before: another weight, another x at the same address, a
// workspace as its last call left it, and on a device the replay of a graph with other data.
#pragma once

#include <cstdint>
#include <optional>

#include "suites/cases/case.h"
#include "suites/judge/expected/test_vector.h"
#include "suites/judge/judge.h"

namespace qcts {

// Added to the seed for another weight, or for all other data.
inline constexpr uint64_t kOtherSeed = 1'000'003;

// Returns x with its last element other than zero made twice as large as any, so that a scale of x changes;
// nullopt if that is not finite.
std::optional<KernelInput> with_a_larger_x(const KernelInput& input);

// `test_vector` is that of the case, which has a synthetic input and an implementation that serves it. If an
// answer is wrong, fills in status, reason and mismatch. Throws ProviderFault.
void judge_states(const Case& c, const JudgeContext& context, const TestVector& test_vector,
                  Verdict& verdict);

}  // namespace qcts
