// SPDX-License-Identifier: BSD-3-Clause
// Checks the claims of a linear on the answers of a numerics case. Determinism checks the claims of all ops,
// on small problems.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/verdict.h"
#include "suites/judge/expected/compare.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

struct BrokenClaim {
  std::string reason;
  std::optional<Mismatch> mismatch = {};
};

class LinearClaims {
 public:
  // `threads` is the number of the first call. The arguments must outlive the object.
  LinearClaims(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads)
      : kernel_(kernel), input_(input), threads_(threads) {}

  // The functions return nullopt if the claim holds, is not made, or does not apply.

  // BIT_EXACT: y has the exact sums, rounded once. `bounds` are those of y.
  std::optional<BrokenClaim> bit_exact(const std::vector<std::byte>& y,
                                       std::span<const Bounded> bounds) const;
  // BATCH_INVARIANT: three rows of a batch that has many give the same y on their own. Determinism asks all
  // rows of small batches.
  std::optional<BrokenClaim> rows_alone(const std::vector<std::byte>& y) const;
  // BATCH_INVARIANT: a row of a batch is at other addresses than a row on its own, so y does not depend on
  // the buffers. `how` describes those of `other`.
  std::optional<BrokenClaim> any_buffers(const std::vector<std::byte>& y, const std::vector<std::byte>& other,
                                         const RunOptions& options, const std::string& how) const;
  // THREAD_INVARIANT: a large problem gives the same y with more threads.
  std::optional<BrokenClaim> many_threads(const std::vector<std::byte>& y) const;

 private:
  bool claims(uint32_t claim) const { return (kernel_.claims & claim) != 0; }
  std::optional<BrokenClaim> differ(const std::vector<std::byte>& want, const std::vector<std::byte>& got,
                                    int64_t rows, const std::string& otherwise) const;

  const qcts_kernel& kernel_;
  const KernelInput& input_;
  const uint32_t threads_;
};

}  // namespace qcts
