// SPDX-License-Identifier: BSD-3-Clause
// Explains wrong planes of quantize and quantize_activation by the recipe, the input or the rounding that
// gives exactly them.
#pragma once

#include <optional>

#include "suites/judge/diagnosis/answer_hypotheses.h"

namespace qcts {

// Returns nullopt unless a hypothesis predicts every element of `got`, and at least kLeastDistinct different
// ones of the elements that are not those of `want`.
std::optional<AnswerExplanation> explain_planes(const KernelInput& input, const Planes& want,
                                                const Planes& got);

// The ways to choose between the two codes around a value, other than the nearest with ties to even.
// They need a code, a scale and a zero for each element, so only qdata may differ.
std::optional<AnswerExplanation> explain_code_rounding(const KernelInput& input, const Planes& want,
                                                       const Planes& got);

}  // namespace qcts
