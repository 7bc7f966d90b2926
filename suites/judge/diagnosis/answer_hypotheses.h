// SPDX-License-Identifier: BSD-3-Clause
// Explains a wrong y: finds the single mistake that predicts every element of it, the wrong and the right
// ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "suites/judge/diagnosis/least_distinct.h"
#include "suites/judge/expected/expectation.h"

namespace qcts {

// An answer of `linear` [m, n] or `dequantize` [n, k].
struct SeenAnswer {
  const KernelInput& input;
  std::vector<Bounded> want;
  std::span<const std::byte> got;              // elements of input.y_type()
  const LinearReference* reference = nullptr;  // linear
  LinearStages stages = {};                    // linear
};
SeenAnswer seen_linear(const KernelInput& input, const Expectation& expectation, const LinearStages& stages,
                       std::span<const std::byte> got);
// `want` is the right answer, bit for bit.
SeenAnswer seen_dequantized(const KernelInput& input, std::span<const std::byte> want,
                            std::span<const std::byte> got);

// The values that an element may have under a mistake. NaN: it has to be a NaN.
struct Predicted {
  double low = 0, high = 0;
};
using PredictElement = std::function<Predicted(size_t index)>;

// One mistake. `make` prepares its prediction; nullptr where this mistake cannot be made.
struct AnswerHypothesis {
  std::string name;
  std::function<PredictElement()> make;
};

// The mistakes of the stages around the weights: x, the sums, the bias, the rounding of y, its place.
std::vector<AnswerHypothesis> answer_hypotheses(const SeenAnswer& seen, std::span<const size_t> elements);
// Appends the mistakes of the arithmetic between codes and y: an order of roundings, sums that saturate.
void add_arithmetic(const SeenAnswer& seen, std::vector<AnswerHypothesis>& all);
// Returns summaries of all of `elements`, whatever the reason: one ratio or one difference, which the name
// holds.
std::vector<AnswerHypothesis> answer_summaries(const SeenAnswer& seen, std::span<const size_t> elements);

struct AnswerExplanation {
  std::string name;
  std::string other;   // a second mistake that predicts as much; may be empty
  uint64_t wrong = 0;  // the wrong elements, all of them predicted
  std::string
      region;  // what holds all wrong elements, if the rest of y is right: "the last row"; may be empty
};
using HypothesesOf = std::vector<AnswerHypothesis> (*)(const SeenAnswer&, std::span<const size_t>);

// Returns nullopt unless a hypothesis predicts all elements, and at least kLeastDistinct different wrong
// ones. `of` is one of the two lists above. `wrong` is how many elements the judge calls wrong.
std::optional<AnswerExplanation> explain_answer(const SeenAnswer& seen, HypothesesOf of, uint64_t wrong);

// For an answer with too few different values to be explained, but kLeastAgreeing: returns the only mistake
// that predicts it, or "" if there is none or more than one.
std::string agrees_with(const SeenAnswer& seen, HypothesesOf of, uint64_t wrong);

// Returns "hypothesis: bias missing (predicts 185 of 185), all in the last row".
std::string describe(const AnswerExplanation& explanation);

}  // namespace qcts
