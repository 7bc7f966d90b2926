// SPDX-License-Identifier: BSD-3-Clause
// The problem of a latency case, made, run once and verified: shared by the latency kind and by qcts_bench.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "suites/cases/case.h"
#include "suites/judge/expected/question.h"
#include "suites/timing/contender.h"

namespace qcts {

// The problem of a latency case on a kernel: random planes of c's shape, noise for x. quantize gets its
// weight as x.
KernelInput latency_input(const Case& c, uint64_t seed);
// The dense layer of the same m, n, k and dtype: plane "w" of scheme "dense".
KernelInput dense_latency_input(const Case& c, uint64_t seed);

// A kernel that is ready to be timed.
class TimedKernel {
 public:
  // Nothing is run yet. `kernel` outlives the object.
  TimedKernel(const qcts_kernel& kernel, KernelInput input, uint32_t threads);
  // c's own kernel on latency_input().
  TimedKernel(const Case& c, uint64_t seed, uint32_t threads);

  TimedKernel(const TimedKernel&) = delete;
  TimedKernel& operator=(const TimedKernel&) = delete;

  Support supports() const { return contender_->supports(); }
  // Copies for the cold measurement, one call, and the verdict on what it wrote: linear at 256 sampled
  // outputs or more (first, last, tails and in between) against the bound, the others whole and bit for bit.
  // Empty: right. Throws ProviderFault.
  std::string make_and_verify(size_t copies);
  // The same check on what the buffers hold now.
  std::string verify();
  // A call on other data at the same addresses, prepared again where that is done, and the same check:
  // whoever knows an answer, or part of one, by where it was asked for gives the old one. Not for a kernel
  // that is timed by its provider.
  std::string verify_anew(uint64_t seed);
  KernelContender& contender() { return *contender_; }
  // Multiplications and additions of a linear; 0 for the other operations.
  double operations() const;

 private:
  std::string verify_linear(const KernelAnswer& answer) const;
  std::vector<ExactWeight> exact_row(int64_t n) const;

  const qcts_kernel& kernel_;
  KernelInput input_;
  std::unique_ptr<KernelContender> contender_;
};

}  // namespace qcts
