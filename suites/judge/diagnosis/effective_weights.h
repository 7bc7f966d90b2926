// SPDX-License-Identifier: BSD-3-Clause
// Explains a wrong answer by the weights that produced it.
// The weights come from linear with one-hot rows or from the output of dequantize.
#pragma once

#include <string>

#include "suites/judge/diagnosis/weight_hypotheses.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {

// Finds the weights that `linear` uses by running it on one-hot rows, as many per call as `input` has.
// Throws the exceptions of the kernel's calls.
WeightExplanation probe_weights(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads);
// Explains an answer of `dequantize`, row-major [n, k].
WeightExplanation explain_dequantized(const KernelInput& input, std::span<const std::byte> y);

struct ProbedWeights {
  std::string text;        // "effective weights by one-hot probing: ..." and describe(WeightExplanation)
  bool are_right = false;  // so the fault is elsewhere
  bool are_explained = false;
  std::string agree_with = {};  // WeightExplanation::agrees_with()
  // The weights that linear used, [n, k], and their relative error; empty unless every column was probed.
  std::vector<double> values = {};
  double tolerance = 0;
};
// Never throws because of the kernel.
ProbedWeights describe_effective_weights(const qcts_kernel& kernel, const KernelInput& input,
                                         uint32_t threads);
// The same for explain_dequantized(). Weights that differ only by rounding are not called right.
ProbedWeights describe_dequantized(const KernelInput& input, std::span<const std::byte> y);

}  // namespace qcts
