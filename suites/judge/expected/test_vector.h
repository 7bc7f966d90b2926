// SPDX-License-Identifier: BSD-3-Clause
// Test vectors of numerics, determinism and latency cases.
// A test vector has the input, and the facts about the answer that are known before the kernel runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/oracle/bound.h"
#include "suites/cases/case.h"
#include "suites/cases/conformance/profiles.h"
#include "suites/judge/expected/compare.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

struct TestVector {
  KernelInput input;
  KernelAnswer expected;    // every op but linear: the answer must match bit for bit
  bool is_refused = false;  // quantize: the scheme cannot represent this weight, so QCTS_FAILED is expected
  // linear: fraction bits of an accumulator with which every sum is exact. y must then match bit for bit.
  // 0: the sums are not exact.
  int exact_bits = 0;
  // linear: the relation (inputs/generate_related.h) between y and the answers to `related`.
  // The relation is nullopt if `related` is empty.
  std::optional<Generator> relation;
  std::vector<KernelInput> related;
  std::vector<std::byte> recorded_y;  // linear on a golden: the real library's answer; otherwise empty
  // True if recorded_y is the product of x and the weight, both dequantized to x's dtype.
  bool recorded_dense = false;
};

// Returns `input` with the reference's answer. For linear, there is no answer (see LinearReference).
TestVector test_vector_for(KernelInput input);

// Returns the planes that quantize or quantize_activation has to give, by the input's recipe. Throws
// std::invalid_argument for a weight that the scheme cannot represent.
Planes quantized_planes(const KernelInput& input);

// Makes the test vector of a case. `seed` is mixed into synthetic inputs.
// The expected answer comes from the reference for synthetic cases.
// For goldens, the expected answer comes from the producer's own files, unless `played` has another recipe.
// Throws Refused or std::runtime_error if the golden lacks data that the case needs.
TestVector make_test_vector(const Case& c, uint64_t seed, const PlayedProfiles* played = nullptr);

// The weight and x for linear's oracle, exact and by row. x is quantized by its activation policy.
class LinearReference {
 public:
  explicit LinearReference(const KernelInput& input, bool with_rows = true);
  LinearReference(const LinearReference&) = delete;  // rows_of_x_ points into x_
  LinearReference& operator=(const LinearReference&) = delete;

  // Returns y, row-major [m, n]. Works without rows, because it reads one at a time.
  std::vector<double> sums() const;
  // Returns y and the bound that the stages allow, row-major [m, n]. Requires `with_rows`.
  std::vector<Bounded> bounds(const LinearStages& stages) const;
  // Returns the bound of one element, for a row given by the caller.
  Bounded bounded(std::span<const ExactWeight> row, int64_t m, int64_t n, const LinearStages& stages) const;
  std::span<const ExactWeight> row(int64_t n) const;
  std::span<const double> x(int64_t m) const;

 private:
  void read_rows();
  void read_quantized_x();
  LinearOracle oracle(const OracleWeights& weights, int64_t m, int64_t n) const;
  Bounded bounded(const OracleWeights& weights, int64_t m, int64_t n, const LinearStages& stages) const;

  const KernelInput& input_;
  std::vector<ExactWeight> weights_;  // of the different rows, in the order in which they occur
  std::vector<size_t> place_of_row_;  // in weights_, counted in rows
  std::vector<double> x_, bias_;
  std::vector<OracleX> rows_of_x_;
  // The offset of each row of quantized x (see linear_oracle()); empty for weight_only.
  std::vector<double> offsets_;
};

// Keeps the last test vector, because the variants of a case run one after another with the same one.
class TestVectorCache {
 public:
  const TestVector& get(const Case& c, uint64_t seed, const PlayedProfiles* played = nullptr);
  const LinearReference& reference();  // of the last test vector, which must be for linear
  // Returns what `make` returned for this name, as long as get() is asked of one case.
  const TestVector& beside(const std::string& name, const std::function<TestVector()>& make);

 private:
  CaseId case_id_;
  uint64_t seed_ = 0;
  std::optional<TestVector> test_vector_;
  std::optional<LinearReference> reference_;
  std::map<std::string, TestVector> beside_;
};

// Returns the rounding stages that a kernel declares for an x of this type. For every op but linear, returns
// the strictest stages. Throws ProviderFault for a type that nothing can round to.
LinearStages declared_stages(const qcts_kernel& kernel, DType x);

// Returns the rounding stages of the library that recorded a golden's y, as the scheme knows its producer.
// Throws std::logic_error, which names the scheme and policy if nothing is known.
LinearStages recorded_stages(const TestVector& test_vector);

}  // namespace qcts
