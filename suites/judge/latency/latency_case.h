// SPDX-License-Identifier: BSD-3-Clause
// Builds the problem of a latency case, runs it once and verifies it.
// The latency kind and qcts_bench use this.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "suites/cases/case.h"
#include "suites/judge/expected/test_vector.h"
#include "suites/judge/latency/drawn_outputs.h"
#include "suites/timing/roof.h"
#include "suites/timing/timed_kernel.h"

namespace qcts {

// Returns the problem of a latency case: random planes of c's shape and random x.
// For quantize, x is the weight.
KernelInput latency_input(const Case& c, uint64_t seed);
// Returns the dense layer of the same m, n, k and dtype, with plane "w" of scheme "dense".
KernelInput dense_latency_input(const Case& c, uint64_t seed);

// A kernel ready to be timed.
class VerifiedKernel {
 public:
  // Prepares to run `kernel`, which must outlive the object, but runs nothing yet.
  VerifiedKernel(const qcts_kernel& kernel, KernelInput input, uint32_t threads);
  // Prepares to run c's own kernel on latency_input().
  VerifiedKernel(const Case& c, uint64_t seed, uint32_t threads, const PlayedProfiles* played = nullptr);

  VerifiedKernel(const VerifiedKernel&) = delete;
  VerifiedKernel& operator=(const VerifiedKernel&) = delete;

  Support supports() const { return timed_->supports(); }
  // Makes the copies for the cold measurement, calls the kernel once and checks the output.
  // For linear, checks at least 256 sampled outputs (first, last, tails and in between) against the bound; on
  // a device, those of up to 16 rows of x and 16 columns.
  // For other operations, checks all of the output bit for bit.
  // Returns an empty string if the output is right. Throws ProviderFault.
  std::string make_and_verify(size_t copies);
  // Checks one call of the last batch in the same way, drawn at random.
  std::string verify();
  // Makes linear draw outputs after each batch that is timed from now on, and hold them against the bound.
  // That takes about as long as the batch. A wrong one is a ProviderFault, and so is one that changes after
  // the batch has ended.
  void check_batches();
  // Draws more from the last batch, until a call that skips 1 % of its work is found with probability 0.99.
  // Returns the number of outputs that were drawn.
  uint64_t finish_batches();
  // Writes other data to the same addresses and prepares again if the kernel has a prepare().
  // Then calls the kernel and checks its answer.
  // A kernel that caches answers by address would return the old answer.
  // Must not be called for kernels that their provider times.
  std::string verify_on_other_data(uint64_t seed);
  TimedKernel& timed() { return *timed_; }
  const TimedKernel& timed() const { return *timed_; }
  // Returns the multiplications and additions of a linear, or 0 for other operations.
  double operations() const;

 private:
  std::string verify_linear(const KernelAnswer& answer) const;
  KernelInput with_rows(const std::set<int64_t>& rows) const;

  const qcts_kernel& kernel_;
  KernelInput input_;
  std::unique_ptr<TimedKernel> timed_;
  std::unique_ptr<DrawnOutputs> drawn_;
  std::mt19937_64 random_{std::random_device()()};
};

// Returns what limits the kernel of a latency case that has been made ready.
RoofRequest roof_request(const Case& c, const VerifiedKernel& kernel, uint32_t threads);

}  // namespace qcts
