// What a numerics, determinism or latency case asks of a kernel: the input, and what is known of the answer
// before the kernel runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "suites/case.h"
#include "suites/compare.h"
#include "suites/kernel_run.h"

namespace qcts {

struct Question {
  KernelInput input;
  KernelAnswer expected;              // every op but linear: wanted bit for bit
  bool exact_sums = false;            // linear: y is wanted bit for bit
  std::vector<std::byte> recorded_y;  // linear on a golden: what the real library answered; empty otherwise
};

// Synthetic cases are expected to mean what the reference says; golden ones what the producer's own files
// say. `seed` is mixed into synthetic inputs. Throws Refused or std::runtime_error when the golden does not
// hold what the case needs.
Question ask(const Case& c, uint64_t seed);

// The weight of linear's oracle, row by row, exact.
class LinearTruth {
 public:
  explicit LinearTruth(const KernelInput& input, bool with_rows = true);

  // Row-major [m, n]: y and the bound that `numerics` allows. Needs the rows.
  std::vector<Bounded> bounds(const qcts_numerics& numerics) const;
  // One element, for a row that the caller has or has changed.
  Bounded bounded(std::span<const ExactWeight> row, int64_t m, int64_t n,
                  const qcts_numerics& numerics) const;
  std::span<const ExactWeight> row(int64_t n) const;
  std::span<const double> x(int64_t m) const;

 private:
  const KernelInput& input_;
  std::vector<ExactWeight> weights_;
  std::vector<double> x_, bias_;
};

// Where the library that recorded a golden's y rounds: the producer's CPU path of the scheme (see linear_truth.cc
// for the sources).
qcts_numerics recorded_numerics(const Scheme& scheme, DType dtype);

}  // namespace qcts
