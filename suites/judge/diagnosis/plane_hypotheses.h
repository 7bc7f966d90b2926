// SPDX-License-Identifier: BSD-3-Clause
// Explains wrong planes of quantize and quantize_activation by the recipe, the input or the rounding that
// gives exactly them.
#pragma once

#include <optional>

#include "suites/judge/diagnosis/answer_hypotheses.h"

namespace qcts {

// Do planes have these names, types and shapes?
bool have_specs(const Planes& planes, const std::vector<PlaneSpec>& specs);

// Returns nullopt unless a hypothesis predicts every element of `got`, and as many different ones of those
// that are not the elements of `want` as `distinct` allows.
std::optional<AnswerExplanation> explain_planes(const KernelInput& input, const Planes& want,
                                                const Planes& got, const Distinct& distinct = kEnough);

// The ways to choose between the two codes around a value, other than the nearest with ties to even, and of
// dividing by the scale. They need a code and a scale for each element, so only qdata may differ.
std::optional<AnswerExplanation> explain_code_rounding(const KernelInput& input, const Planes& want,
                                                       const Planes& got, const Distinct& distinct);

}  // namespace qcts
