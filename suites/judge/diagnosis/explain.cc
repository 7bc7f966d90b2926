// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/explain.h"

#include <cmath>
#include <set>
#include <string_view>

#include "reference/numerics/soft_float.h"
#include "suites/judge/diagnosis/answer_hypotheses.h"
#include "suites/judge/diagnosis/conduct.h"
#include "suites/judge/diagnosis/effective_weights.h"
#include "suites/judge/diagnosis/least_distinct.h"
#include "suites/judge/diagnosis/plane_hypotheses.h"
#include "suites/judge/diagnosis/recipe_options.h"
#include "suites/judge/diagnosis/wrong_places.h"

namespace qcts {
namespace {

// Weights and products of a linear beyond which its mistake is not looked for: that would take minutes.
constexpr int64_t kMaxExplainedWeights = int64_t{1} << 22, kMaxExplainedProducts = int64_t{1} << 27;

// A small case names nothing, but may belong to a mistake that another case names.
std::string agreement_with(const std::string& name) {
  return name.empty() ? "" : "; too few values to name a mistake, they agree with: " + name;
}

std::string agreement(const SeenAnswer& seen, uint64_t wrong, const ProbedWeights& weights) {
  std::string name = agrees_with(seen, answer_hypotheses, wrong);
  if (name.empty()) name = weights.agree_with;
  if (name.empty()) name = agrees_with(seen, answer_summaries, wrong);
  return agreement_with(name);
}

// Does y follow from the probed weights, within their error?
bool account_for(const ProbedWeights& weights, const SeenAnswer& seen) {
  if (weights.values.empty() || !seen.reference) return true;
  const KernelInput& input = seen.input;
  const size_t n = static_cast<size_t>(input.weight.n), k = static_cast<size_t>(input.weight.k);
  const std::vector<double> got = load_doubles(input.y_dtype, seen.got);
  std::vector<double> bias = load_doubles(input.bias_dtype, input.bias);
  bias.resize(n);
  for (size_t i = 0; i < got.size(); ++i) {
    const std::span<const double> x = seen.reference->x(static_cast<int64_t>(i / n));
    double sum = bias[i % n], size = std::fabs(sum);
    for (size_t c = 0; c < k; ++c) {
      const double term = x[c] * weights.values[i % n * k + c];
      sum += term;
      size += std::fabs(term);
    }
    if (std::isfinite(sum) && std::isfinite(got[i]) && std::fabs(got[i] - sum) > 2 * weights.tolerance * size)
      return false;
  }
  return true;
}

// Wrong weights that are not all that is wrong name no cause of the answer.
std::string beside_more(std::string text) {
  constexpr std::string_view kClaim = "hypothesis: ";
  if (const size_t at = text.find(kClaim); at != text.npos)
    text.replace(at, kClaim.size(), "they agree with: ");
  return text + "; these weights do not give this y, so something else is wrong too";
}

// A mistake that is named says it all; weights, right or wrong, would only follow from it.
std::string in_order(const SeenAnswer& seen, uint64_t wrong, const ProbedWeights& weights) {
  if (const auto named = explain_answer(seen, answer_hypotheses, wrong)) return "; " + describe(*named);
  if (weights.are_explained)
    return "; " + (account_for(weights, seen) ? weights.text : beside_more(weights.text));
  if (const auto common = explain_answer(seen, answer_summaries, wrong)) return "; " + describe(*common);
  return "; " + weights.text + agreement(seen, wrong, weights);
}

std::string placed(const std::string& places) { return places.empty() ? "" : "; " + places; }

// A mistake that is named says where it shows.
std::string with_places(std::string text, const SeenAnswer& seen) {
  if (text.find("hypothesis: ") != text.npos) return text;
  return text + placed(places_in_y(seen));
}

std::string explained_linear(const WrongAnswerOf& wrong, std::vector<VerdictFinding>& findings) {
  const KernelInput& input = wrong.test_vector.input;
  const int64_t elements = input.weight.n * input.weight.k;
  if (elements > kMaxExplainedWeights || input.m * elements > kMaxExplainedProducts)
    return "; too large to look for the cause: a smaller case may name it" +
           placed(places_in_y(seen_linear(input, wrong.expectation, wrong.stages, wrong.answer.y)));
  const ProbedWeights weights = describe_effective_weights(wrong.kernel, input, wrong.threads);
  const SeenAnswer seen = seen_linear(input, wrong.expectation, wrong.stages, wrong.answer.y);
  std::string text = in_order(seen, wrong.wrong_elems, weights);
  text = with_places(std::move(text), seen);
  const bool is_of_sums = text.starts_with("; hypothesis: sums ") || !text.starts_with("; hypothesis: ");
  if (!weights.are_right || !is_of_sums) return text;
  if (const auto narrow = narrow_sum(wrong.kernel, input, wrong.stages, wrong.threads)) {
    findings.push_back({narrow->caveat, ""});
    text += "; " + narrow->text;
  }
  return text;
}

// Returns "; hypothesis: y matches int4_plain_g32 by int4_folded_zero (predicts 920 of 920)" if an option
// of the ledger gives all values, and enough different ones of those that are wrong; otherwise "".
std::string option_of_values(const WrongAnswerOf& wrong) {
  const KernelInput& input = wrong.test_vector.input;
  const DType dtype = input.weight.dtype;
  const auto plane = [&](const std::vector<std::byte>& y) {
    return Plane{"y", dtype, {input.weight.n, input.weight.k}, y};
  };
  const std::vector<double> want = load_doubles(dtype, wrong.test_vector.expected.y),
                            got = load_doubles(dtype, wrong.answer.y);
  std::set<double> distinct;
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[i] && !std::isnan(got[i])) distinct.insert(got[i]);
  if (distinct.size() < kLeastDistinct) return "";
  for (const RecipeOption& option : recipe_options(input))
    if (!option.choice.empty() && !option.is_order &&
        !first_difference(plane(option.play(input).y), plane(wrong.answer.y)))
      return "; " + describe(AnswerExplanation{"y matches " + option.name, "", wrong.wrong_elems, ""});
  return "";
}

std::string explained_planes(const KernelInput& input, const Planes& want, const Planes& got) {
  if (const auto mistake = explain_planes(input, want, got)) return "; " + describe(*mistake);
  const auto like = explain_planes(input, want, got, kTooFew);
  return agreement_with(like && like->other.empty() ? like->name : "") +
         placed(places_in_planes(input, want, got));
}

}  // namespace

std::string explained(const WrongAnswerOf& wrong, std::vector<VerdictFinding>& findings) {
  const KernelInput& input = wrong.test_vector.input;
  const KernelAnswer& expected = wrong.test_vector.expected;
  if (input.op == Op::linear) return explained_linear(wrong, findings);
  if (input.op == Op::dequantize && wrong.answer.y.size() == expected.y.size()) {
    const std::string option = option_of_values(wrong);
    if (!option.empty()) return option;
    const SeenAnswer seen = seen_dequantized(input, expected.y, wrong.answer.y);
    return with_places(in_order(seen, wrong.wrong_elems, describe_dequantized(input, wrong.answer.y)), seen);
  }
  return explained_planes(input, expected.planes, wrong.answer.planes);
}

}  // namespace qcts
