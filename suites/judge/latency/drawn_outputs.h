// SPDX-License-Identifier: BSD-3-Clause
// Outputs of timed calls of a linear that are drawn at random and compared with the bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "suites/judge/expected/test_vector.h"
#include "suites/timing/timed_kernel.h"

namespace qcts {

// Returns row n of the weight, exactly. A dense layer has its one plane for a weight.
std::vector<ExactWeight> exact_weight_row(const KernelInput& input, int64_t n);

// Returns true if the policy takes all rows of x to quantize one of them.
bool quantizes_rows_together(const KernelInput& input);

class DrawnOutputs {
 public:
  // All arguments must outlive the object. `input` is the timed kernel's.
  DrawnOutputs(const qcts_kernel& kernel, KernelInput& input, TimedKernel& timed);

  // Draws from the last batch, which took `us`, for about a tenth of that, and at least kMinOfBatch outputs.
  // Throws ProviderFault if one is wrong, or changes while the others are judged.
  void check(double us);
  // Draws until there are kMinOfCase, and returns how many there are.
  uint64_t finish();

 private:
  static constexpr size_t kMinOfBatch = 4, kMaxOfBatch = 512, kMinOfCase = 512;
  // Some rows of one column of a call's y, and its bytes as the batch left them.
  struct Drawn {
    TimedCall call;
    int64_t n = 0;
    std::vector<int64_t> rows;
    std::vector<std::byte> bytes;
  };
  void check_count(size_t count);
  Drawn draw();
  std::vector<std::byte> read(const Drawn& drawn) const;
  void judge(const Drawn& drawn);

  KernelInput& input_;
  KernelInput some_rows_;  // as the input, for the drawn rows of x
  TimedKernel& timed_;
  const LinearStages stages_;
  bool needs_all_rows_ = false;  // the policy quantizes all rows of x together
  double each_us_ = 1000;        // cost of one output
  uint64_t count_ = 0;
  std::mt19937_64 random_{std::random_device()()};
};

}  // namespace qcts
