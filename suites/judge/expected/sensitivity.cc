// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/expected/sensitivity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "reference/numerics/soft_float.h"
#include "suites/judge/expected/compare.h"

namespace qcts {
namespace {

// Returns the two columns where changing a code by one step moves the sum most: the one with the largest |x|
// (integer codes have equal steps) and the one with the largest |x * w| (the step of a float code grows with
// it).
std::array<uint64_t, 2> most_sensitive_columns(std::span<const double> x, std::span<const ExactWeight> row) {
  std::array<uint64_t, 2> best{0, 0};
  for (uint64_t k = 1; k < x.size(); ++k) {
    if (std::fabs(x[k]) > std::fabs(x[best[0]])) best[0] = k;
    if (std::fabs(x[k] * row[k].product) > std::fabs(x[best[1]] * row[best[1]].product)) best[1] = k;
  }
  return best;
}

// Returns false if the planes are not a valid weight, such as 2:4 sparse planes with a code in a chunk that
// stores none.
bool has_exact_row(const Scheme& scheme, const Planes& planes, const WeightShape& weight, int64_t n,
                   std::vector<ExactWeight>& row) {
  try {
    scheme.exact_row(planes, weight, n, row);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// The bits to change in an element of the weight.
struct CodeStep {
  uint64_t byte = 0;  // of the element
  std::byte mask{0x01};
};

// Returns one step of a code, or of both codes if a byte holds two. A weight without codes changes by 1/16:
// there a kernel can misread only the codes of x, and one step of an e4m3 number is at least that much.
CodeStep code_step(const KernelInput& input, uint64_t row_bytes) {
  if (!input.scheme->quantizes_weight()) {
    if (input.weight.dtype == DType::float32) return {2, std::byte{0x08}};
    return {0, input.weight.dtype == DType::float16 ? std::byte{0x40} : std::byte{0x08}};
  }
  const bool two = row_bytes < static_cast<uint64_t>(input.weight.k);
  return {0, two ? std::byte{0x11} : std::byte{0x01}};
}

// Divides a float16 x by a power of two, so that its products with 8-bit codes are finite in float16, in
// which a kernel may round partial sums.
void divide_large_x(std::vector<std::byte>& x) {
  constexpr double kLargest = 128;
  const size_t count = x.size() / 2;
  double largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(load_float(DType::float16, x, i)));
  if (!(largest > kLargest) || !std::isfinite(largest)) return;
  const double factor = std::exp2(-std::ceil(std::log2(largest / kLargest)));
  for (size_t i = 0; i < count; ++i)
    store_float(DType::float16, x, i, factor * load_float(DType::float16, x, i));
}

}  // namespace

double sensitivity_of_linear(const TestVector& test_vector, const Expectation& expectation,
                             const LinearStages& stages) {
  const KernelInput& input = test_vector.input;
  const Plane& codes = input.planes.front();
  const uint64_t row_bytes = codes.bytes.size() / static_cast<uint64_t>(input.weight.n);
  if (row_bytes * static_cast<uint64_t>(input.weight.n) != codes.bytes.size()) return 0;
  constexpr int64_t kOutputs = 16, kFewOutputs = 4, kLongRow = 16384;
  const int64_t total = input.m * input.weight.n;
  const int64_t sampled = std::min(input.weight.k < kLongRow ? kOutputs : kFewOutputs, total);
  const CodeStep change = code_step(input, row_bytes);
  Planes changed = input.planes;
  std::vector<ExactWeight> row(static_cast<size_t>(input.weight.k)), changed_row(row.size());
  const auto notices = [&](int64_t index) {
    const int64_t m = index / input.weight.n, n = index % input.weight.n;
    const Bounded want = expectation.bounds()[static_cast<size_t>(index)];
    input.scheme->exact_row(input.planes, input.weight, n, row);
    bool seen = false;
    for (const uint64_t column : most_sensitive_columns(expectation.reference().x(m), row)) {
      std::byte& code =
          changed.front().bytes[static_cast<uint64_t>(n) * row_bytes +
                                column * row_bytes / static_cast<uint64_t>(input.weight.k) + change.byte];
      code ^= change.mask;
      const bool is_weight = has_exact_row(*input.scheme, changed, input.weight, n, changed_row);
      code ^= change.mask;
      if (!is_weight) continue;
      const double y = expectation.reference().bounded(changed_row, m, n, stages).value;
      std::vector<std::byte> rounded(dtype_bytes(input.y_dtype));
      store_float(input.y_dtype, rounded, 0, y);
      seen |= expectation.is_exact() ? y != want.value
                                     : !compare_bounded({&want, 1}, input.y_dtype, rounded).equal();
    }
    return seen;
  };
  int64_t noticed = 0;
  for (int64_t s = 0; s < sampled; ++s) noticed += notices(s * total / sampled);
  if (noticed > 0) return static_cast<double>(noticed) / static_cast<double>(sampled);
  constexpr int64_t kMany = int64_t{1} << 18, kTried = 1024;  // of many outputs
  const int64_t step = total > kMany ? total / kTried : 1;
  for (int64_t index = 0; index < total; index += step)
    if (notices(index)) return 1 / static_cast<double>(total);
  return 0;
}

bool notices_skipped_zeros(const TestVector& test_vector, const Expectation& expectation) {
  const KernelInput& input = test_vector.input;
  const auto skipped_sum = [&](int64_t m, int64_t n) {
    double sum = 0;
    const std::span<const double> x = expectation.reference().x(m);
    const std::span<const ExactWeight> row = expectation.reference().row(n);
    for (size_t k = 0; k < x.size(); ++k)
      if (const double weight = row[k].product + row[k].zero; weight != 0) sum += x[k] * weight;
    return sum;
  };
  if (!std::ranges::all_of(expectation.bounds(), [](const Bounded& want) { return std::isnan(want.value); }))
    return false;
  for (int64_t m = 0; m < input.m; ++m)
    for (int64_t n = 0; n < input.weight.n; ++n)
      if (!std::isnan(skipped_sum(m, n))) return true;
  return false;
}

void zero_all_but_two_per_row(KernelInput& input) {
  const int64_t k = input.weight.k, bytes = dtype_bytes(input.x_dtype);
  for (int64_t m = 0; m < input.m; ++m) {
    std::vector<int64_t> places;
    for (int64_t i = m * k; i < (m + 1) * k; ++i)
      if (load_float(input.x_dtype, input.x, static_cast<uint64_t>(i)) != 0) places.push_back(i);
    const int64_t half = std::max<int64_t>(1, std::ssize(places) / 2);
    for (int64_t i = 0; i < std::ssize(places); ++i)
      if ((i + 5 * m) % half != half - 1)
        std::fill_n(input.x.begin() + places[static_cast<size_t>(i)] * bytes, bytes, std::byte{0});
  }
  input.bias.clear();
  if (input.x_dtype == DType::float16) divide_large_x(input.x);
}

bool bitwise_case_is_sensitive(const TestVector& test_vector) {
  if (!test_vector.expected.y.empty())
    return bitwise_is_sensitive(test_vector.input.weight.dtype, test_vector.expected.y, 0);
  for (const Plane& plane : test_vector.expected.planes)
    if (!plane.bytes.empty() && bitwise_is_sensitive(plane.dtype, plane.bytes, 0)) return true;
  return false;
}

}  // namespace qcts
