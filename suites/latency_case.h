// The problem of a latency case, made, run once and verified: shared by the latency kind and by qcts_bench.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "suites/case.h"
#include "suites/contender.h"
#include "suites/question.h"

namespace qcts {

// A kernel that is ready to be timed.
class TimedKernel {
 public:
  // Random planes of c's shape; nothing is run yet.
  TimedKernel(const Case& c, uint64_t seed, uint32_t threads);
  // The dense peer of the same m, n, k and dtype: plane "w" of scheme "dense".
  TimedKernel(const qcts_kernel& dense, const Case& c, uint64_t seed, uint32_t threads);

  TimedKernel(const TimedKernel&) = delete;
  TimedKernel& operator=(const TimedKernel&) = delete;

  Support supports() const { return contender_->supports(); }
  // Copies for the cold measurement, one call, and the verdict on what it wrote: linear at sampled outputs
  // (first, last, tails and in between) against the bound, the others whole and bit for bit. Empty: right.
  // Throws ProviderFault.
  std::string make_and_verify(size_t copies);
  // The same check on what the buffers hold now.
  std::string verify() const;
  KernelContender& contender() { return *contender_; }

 private:
  std::string verify_linear(const KernelAnswer& answer) const;
  std::vector<ExactWeight> exact_row(int64_t n) const;

  const qcts_kernel& kernel_;
  KernelInput input_;
  std::unique_ptr<KernelContender> contender_;
};

}  // namespace qcts
