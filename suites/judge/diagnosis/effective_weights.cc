// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/effective_weights.h"

#include <algorithm>
#include <cmath>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr int64_t kMaxColumns = 256;

// Returns all columns if k is small, otherwise both ends, where the tails are.
std::vector<int64_t> probed_columns(int64_t k) {
  std::vector<int64_t> columns;
  for (int64_t c = 0; c < k; ++c)
    if (k <= kMaxColumns || c < kMaxColumns / 2 || c >= k - kMaxColumns / 2) columns.push_back(c);
  return columns;
}

// Returns values[n * columns + i], output n for a one at columns[i]. Each call has as many rows as the
// failing problem, because kernels take different paths for different m.
std::vector<double> probe(const qcts_kernel& kernel, const KernelInput& input,
                          const std::vector<int64_t>& columns, uint32_t threads) {
  const int64_t n = input.weight.n, k = input.weight.k;
  std::vector<double> values(static_cast<size_t>(n) * columns.size());
  KernelInput asked = input;
  asked.bias.clear();
  for (size_t begin = 0; begin < columns.size(); begin += static_cast<size_t>(input.m)) {
    std::vector<std::byte> x(static_cast<size_t>(input.m * k) * dtype_bytes(input.x_dtype));
    for (size_t i = 0; i < static_cast<size_t>(input.m) && begin + i < columns.size(); ++i)
      store_float(input.x_dtype, x, i * static_cast<size_t>(k) + static_cast<size_t>(columns[begin + i]),
                  1.0);
    asked.x = std::move(x);
    KernelRun run(kernel, asked, {threads, 0, 0});
    const KernelAnswer answer = run.run(Poison::zeros);
    for (size_t i = 0; i < static_cast<size_t>(input.m) && begin + i < columns.size(); ++i)
      for (int64_t r = 0; r < n; ++r)
        values[static_cast<size_t>(r) * columns.size() + begin + i] =
            load_float(input.y_dtype, answer.y, i * static_cast<size_t>(n) + static_cast<size_t>(r));
  }
  return values;
}

// Twice the unit roundoff of a type, relative.
double step_of(uint32_t abi) {
  switch (abi) {
    case QCTS_BF16:
      return 0x1p-7;
    case QCTS_F16:
      return 0x1p-10;
    case QCTS_F32:
      return 0x1p-22;
    default:
      return 0;
  }
}

// Returns the step of the coarsest type that a weight passes through on its way to y.
double tolerance_of(const KernelInput& input, const qcts_numerics& numerics) {
  double tolerance = std::max(step_of(abi_dtype(input.y_dtype)), 0x1p-22);
  for (uint32_t cast : {numerics.scale_cast, numerics.weight_cast, numerics.product_cast,
                        numerics.partial_cast, numerics.output_cast})
    tolerance = std::max(tolerance, step_of(cast == QCTS_LIKE_X ? abi_dtype(input.x_dtype) : cast));
  return tolerance;
}

// Says where a fault may be if the weights are right. Probing uses x of ones and zeros, and no bias.
std::string hint_of(const KernelInput& input) {
  std::vector<const char*> places;
  if (input.weight.k > 1) places.push_back("the accumulation");
  if (!input.bias.empty()) places.push_back("the bias");
  if (input.m > 1) places.push_back("the paths for m > 1");
  places.push_back("the rounding of y");
  std::string text = ", so look at ";
  for (size_t i = 0; i < places.size(); ++i)
    text += (i == 0 ? "" : i + 1 < places.size() ? ", " : " and ") + std::string(places[i]);
  return text;
}

SeenWeights seen_by_probing(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads) {
  SeenWeights seen{input.scheme, input.weight, &input.planes, input.m, probed_columns(input.weight.k), {}, 0};
  seen.values = probe(kernel, input, seen.columns, threads);
  seen.tolerance = tolerance_of(input, kernel.numerics);
  return seen;
}

}  // namespace

WeightExplanation probe_weights(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads) {
  return explain_weights(seen_by_probing(kernel, input, threads));
}

WeightExplanation explain_dequantized(const KernelInput& input, std::span<const std::byte> y) {
  SeenWeights seen{
      input.scheme, input.weight, &input.planes, 0, {}, {}, step_of(abi_dtype(input.weight.dtype))};
  for (int64_t c = 0; c < input.weight.k; ++c) seen.columns.push_back(c);
  for (int64_t i = 0; i < input.weight.n * input.weight.k; ++i)
    seen.values.push_back(load_float(input.weight.dtype, y, static_cast<uint64_t>(i)));
  return explain_weights(seen);
}

ProbedWeights describe_effective_weights(const qcts_kernel& kernel, const KernelInput& input,
                                         uint32_t threads) {
  try {
    SeenWeights seen = seen_by_probing(kernel, input, threads);
    const WeightExplanation explanation = explain_weights(seen);
    const bool are_right = explanation.wrong == 0;
    ProbedWeights probed{
        "effective weights by one-hot probing: " + describe(explanation) + (are_right ? hint_of(input) : ""),
        are_right, explanation.is_explained(), explanation.agrees_with()};
    if (static_cast<int64_t>(seen.columns.size()) == input.weight.k) probed.values = std::move(seen.values);
    probed.tolerance = seen.tolerance;
    return probed;
  } catch (const std::exception& error) {
    return {std::string("one-hot probing failed: ") + error.what()};
  }
}

namespace {

// Are all elements equal as numbers, so that only zeros can differ in bits?
bool loses_only_signs_of_zero(const KernelInput& input, std::span<const std::byte> y) {
  const DType dtype = input.weight.dtype;
  const std::vector<double> want = load_doubles(dtype, input.scheme->dequantize(input.planes, input.weight));
  const std::vector<double> got = load_doubles(dtype, y);
  return std::ranges::equal(want, got,
                            [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
}

}  // namespace

ProbedWeights describe_dequantized(const KernelInput& input, std::span<const std::byte> y) {
  const WeightExplanation explanation = explain_dequantized(input, y);
  if (explanation.wrong > 0)
    return {describe(explanation), false, explanation.is_explained(), explanation.agrees_with()};
  if (loses_only_signs_of_zero(input, y))
    return {"only the sign of zero is wrong, so look at the codes that mean -0 and +0", true, false};
  return {"each wrong element is within two steps of " + std::string(dtype_name(input.weight.dtype)) +
              " of the right one, so look at the rounding",
          true, false};
}

}  // namespace qcts
