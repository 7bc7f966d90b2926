// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "reference/numerics/soft_float.h"
#include "suites/identify/option_shares.h"
#include "suites/inputs/generate.h"
#include "suites/inputs/inputs.h"
#include "suites/vectors/special_rows.h"

namespace qcts {
namespace {

constexpr int64_t kMostElems = 1 << 14;
constexpr int64_t kMostRowElems = 1 << 13;
constexpr int64_t kMostProducts = 1 << 17;  // m * n * k of a linear, of which every option takes a sum

bool is_finite_input(const KernelInput& input) {
  if (!input.has_x()) return true;
  return std::ranges::all_of(
      load_doubles(input.op == Op::quantize ? input.weight.dtype : input.x_dtype, input.x),
      [](double value) { return std::isfinite(value); });
}

bool is_asked(Op op, const Synthetic& input, Policy policy) {
  if (op == Op::linear &&
      (input.generator != Generator::noise || input.m * input.weight.n * input.weight.k > kMostProducts))
    return false;
  const int64_t rows = std::max(input.weight.n, input.m);
  return input.activation == policy && input.m > 0 && rows * input.weight.k <= kMostElems &&
         input.generator != Generator::drawn && input.generator != Generator::not_sparse;
}

void add_special_rows(const Scheme& scheme, const WeightShape& shape, std::vector<KernelInput>& inputs) {
  for (SpecialRow& row : special_rows(scheme, shape)) {
    KernelInput input;
    input.op = Op::quantize;
    input.scheme = &scheme;
    input.weight = shape;
    input.x_dtype = input.y_dtype = input.bias_dtype = shape.dtype;
    input.x = std::move(row.weight);
    if (is_finite_input(input)) inputs.push_back(std::move(input));
  }
}

}  // namespace

std::vector<KernelInput> identifying_inputs(Op op, const Scheme& scheme, Policy policy, Layout layout) {
  std::vector<KernelInput> inputs;
  std::vector<WeightShape> smallest;  // one per type
  for (const Synthetic& synthetic : synthetic_inputs(Kind::numerics, op, scheme, layout, InputSet::all)) {
    if (!is_asked(op, synthetic, policy)) continue;
    KernelInput input = generate(scheme, op, layout, synthetic, synthetic.seed).input;
    if (is_finite_input(input)) inputs.push_back(std::move(input));
    const WeightShape& shape = synthetic.weight;
    const auto known = std::ranges::find(smallest, shape.dtype, &WeightShape::dtype);
    if (known == smallest.end())
      smallest.push_back(shape);
    else if (shape.n * shape.k < known->n * known->k)
      *known = shape;
  }
  if (op == Op::quantize)
    for (const WeightShape& shape : smallest)
      if (shape.n * shape.k <= kMostRowElems) add_special_rows(scheme, shape, inputs);
  return inputs;
}

}  // namespace qcts
