// SPDX-License-Identifier: BSD-3-Clause
// A failed answer, explained by the weights behind it: read back from linear with one-hot rows, or given by
// dequantize itself.
#pragma once

#include <string>

#include "suites/judge/diagnosis/weight_hypotheses.h"
#include "suites/judge/expected/question.h"

namespace qcts {

// What `linear` multiplies by, found by asking for x = one-hot rows, as many a call as `input` has. Throws
// what the kernel's calls throw.
WeightExplanation probe_weights(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads);
// The same for an answer of `dequantize`, row-major [n, k].
WeightExplanation explain_dequantized(const KernelInput& input, std::span<const std::byte> y);

// "effective weights by one-hot probing: ..." as describe(WeightExplanation) puts it. Never throws for what
// the kernel does.
std::string describe_effective_weights(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads);

}  // namespace qcts
