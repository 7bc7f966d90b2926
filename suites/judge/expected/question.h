// SPDX-License-Identifier: BSD-3-Clause
// What a numerics, determinism or latency case asks of a kernel: the input, and what is known of the answer
// before the kernel runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/oracle/bound.h"
#include "suites/cases/case.h"
#include "suites/judge/expected/compare.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

struct Question {
  KernelInput input;
  KernelAnswer expected;    // every op but linear: wanted bit for bit
  bool is_refused = false;  // quantize: the scheme cannot hold this weight, so QCTS_FAILED is wanted
  bool exact_sums = false;  // linear: y is wanted bit for bit
  // linear: one of inputs/generate_related.h, between y and the answers to `related`; nullopt where that is
  // empty
  std::optional<Generator> relation;
  std::vector<KernelInput> related;
  std::vector<std::byte> recorded_y;  // linear on a golden: what the real library answered; empty otherwise
  bool recorded_dense = false;        // by multiplying x and the weight, both dequantized to x's dtype
};

// `input`, with what the reference says of it; of linear it says nothing here: LinearTruth.
Question question_about(KernelInput input);

// Synthetic cases are expected to mean what the reference says; golden ones what the producer's own files
// say. `seed` is mixed into synthetic inputs. Throws Refused or std::runtime_error when the golden does not
// hold what the case needs.
Question ask(const Case& c, uint64_t seed);

// The weight and x of linear's oracle, row by row, exact: x as its activation policy means it.
class LinearTruth {
 public:
  explicit LinearTruth(const KernelInput& input, bool with_rows = true);
  LinearTruth(const LinearTruth&) = delete;  // rows_of_x_ lie in x_
  LinearTruth& operator=(const LinearTruth&) = delete;

  // Row-major [m, n]: y alone. Needs no rows: it reads one at a time.
  std::vector<double> sums() const;
  // Row-major [m, n]: y and the bound that `numerics` allows. Needs the rows.
  std::vector<Bounded> bounds(const qcts_numerics& numerics) const;
  std::vector<Bounded> bounds(const LinearStages& stages) const;
  // One element, for a row that the caller has or has changed.
  Bounded bounded(std::span<const ExactWeight> row, int64_t m, int64_t n,
                  const qcts_numerics& numerics) const;
  std::span<const ExactWeight> row(int64_t n) const;
  std::span<const double> x(int64_t m) const;

 private:
  void read_quantized_x();
  LinearOracle oracle(const OracleWeights& weights, int64_t m, int64_t n) const;
  Bounded bounded(const OracleWeights& weights, int64_t m, int64_t n, const LinearStages& stages) const;

  const KernelInput& input_;
  std::vector<ExactWeight> weights_;
  std::vector<double> x_, bias_;
  std::vector<OracleX> rows_of_x_;
  std::vector<double> offsets_;  // of each row of quantized x, see linear_oracle(); empty for weight_only
};

// The question that was asked last. The variants of a case follow one another, and all are asked the same.
class LastQuestion {
 public:
  const Question& ask(const Case& c, uint64_t seed);
  const LinearTruth& truth();  // of it, which is of linear

 private:
  CaseId case_id_;
  uint64_t seed_ = 0;
  std::optional<Question> question_;
  std::optional<LinearTruth> truth_;
};

// Where the library that recorded a golden's y rounds: what the scheme knows of its producer. Throws
// std::logic_error naming the scheme and the policy where nothing is known.
LinearStages recorded_stages(const Question& question);

}  // namespace qcts
