// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/expected/expectation.h"

#include <stdexcept>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/choices/other_recipes.h"

namespace qcts {
namespace {

// Adds the map of y, which has `cols` columns, unless nothing could be compared.
template <typename WrongElements>
Mismatch with_map(Mismatch mismatch, int64_t cols, WrongElements wrong) {
  if (mismatch.count > 0) mismatch.map = wrong_map("y", wrong(), static_cast<uint64_t>(cols));
  return mismatch;
}

}  // namespace

std::string place_in_matrix(const char* name, uint64_t index, int64_t cols, int64_t group) {
  const int64_t row = static_cast<int64_t>(index) / cols, column = static_cast<int64_t>(index) % cols;
  std::string text =
      std::string(name) + ": row " + std::to_string(row) + ", column " + std::to_string(column);
  if (group > 0) text += " (group " + std::to_string(column / group) + ")";
  return text;
}

Mismatch mismatch_of(const Comparison& compared, std::string where) {
  if (!compared.problem.empty())
    return {std::move(where), "comparable elements", compared.problem, 0, compared.total};
  return {std::move(where), compared.want, compared.got, compared.differing, compared.total};
}

Expectation::Expectation(const TestVector& test_vector, const LinearReference* reference,
                         const LinearStages& stages)
    : test_vector_(test_vector), reference_(reference) {
  if (!reference) return;
  bounds_ = reference->bounds(stages);
  if (test_vector.exact_bits > 0 && test_vector.exact_bits <= exact_fraction_bits(stages)) make_exact();
}

Finding Expectation::judge(const KernelAnswer& answer) const {
  const KernelInput& input = test_vector_.input;
  const bool quantizes = input.op == Op::quantize || input.op == Op::quantize_activation;
  if (!quantizes || input.recipe == nullptr) return judge_answer(answer);
  KernelAnswer forgiven = answer;
  forgive_blocks(*input.recipe, *input.scheme,
                 input.op == Op::quantize
                     ? Matrix{input.weight.dtype, input.weight.n, input.weight.k, input.x}
                     : input.x_matrix(),
                 test_vector_.expected.planes, forgiven.planes);
  return judge_answer(forgiven);
}

Finding Expectation::judge_answer(const KernelAnswer& answer) const {
  const KernelInput& input = test_vector_.input;
  if (input.op == Op::linear) return judge_linear(answer);
  if (input.op == Op::dequantize) {
    const DType dtype = input.weight.dtype;
    const std::vector<std::byte>& want = test_vector_.expected.y;
    const Comparison compared = compare_bitwise(dtype, want, answer.y);
    if (compared.equal()) return {};
    const std::string where = place_in_matrix("y", compared.first, input.weight.k, input.scheme->group());
    return {with_map(mismatch_of(compared, where), input.weight.k,
                     [&] { return wrong_elements(dtype, want, answer.y); }),
            0};
  }
  if (input.op == Op::quantize_activation)
    return {compare_activation_planes(test_vector_.expected.planes, answer.planes), 0};
  const Layout layout = input.op == Op::pack ? input.layout : kPlain;
  return {compare_planes(*input.scheme, input.weight, layout, test_vector_.expected.planes, answer.planes),
          0};
}

void Expectation::make_exact() {
  const DType dtype = test_vector_.input.y_dtype;
  exact_y_.resize(bounds_.size() * dtype_bytes(dtype));
  for (size_t i = 0; i < bounds_.size(); ++i) store_float(dtype, exact_y_, i, bounds_[i].value);
}

std::vector<Bounded> Expectation::wanted() const {
  std::vector<Bounded> all = bounds_;
  if (is_exact())
    for (Bounded& one : all) one = {one.value, one.value, one.value, 0};
  return all;
}

Finding Expectation::judge_linear(const KernelAnswer& answer) const {
  const KernelInput& input = test_vector_.input;
  const auto place = [&](uint64_t index) { return place_in_matrix("y", index, input.weight.n, 0); };
  if (is_exact()) {
    const Comparison compared = compare_bitwise(input.y_dtype, exact_y_, answer.y);
    // Ignore the sign of zero: in a sum of zeros it depends on the order.
    if (compared.equal() || only_zero_signs_differ(answer)) return {};
    return {with_map(mismatch_of(compared, place(compared.first)), input.weight.n,
                     [&] { return wrong_elements(input.y_dtype, exact_y_, answer.y); }),
            0};
  }
  const BoundedComparison compared = compare_bounded(bounds_, input.y_dtype, answer.y);
  if (compared.holds()) return {std::nullopt, compared.worst};
  return {with_map(mismatch_of(compared, place(compared.first)), input.weight.n,
                   [&] { return wrong_elements(bounds_, input.y_dtype, answer.y); }),
          compared.worst};
}

bool Expectation::only_zero_signs_differ(const KernelAnswer& answer) const {
  if (answer.y.size() != exact_y_.size()) return false;
  const DType dtype = test_vector_.input.y_dtype;
  for (size_t i = 0; i < bounds_.size(); ++i)
    if (load_float(dtype, answer.y, i) != load_float(dtype, exact_y_, i)) return false;
  return true;
}

}  // namespace qcts
