// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/numerics/claims.h"

#include <cmath>

#include "reference/numerics/soft_float.h"
#include "suites/judge/expected/expectation.h"
#include "suites/providers/buffer_trials.h"

namespace qcts {
namespace {

constexpr int64_t kFewRows = 33;     // of determinism's x, at most
constexpr double kOracle = 0x1p-45;  // error of the oracle's own sums, at most

}  // namespace

std::optional<BrokenClaim> LinearClaims::bit_exact(const std::vector<std::byte>& y,
                                                   std::span<const Bounded> bounds) const {
  if (!claims(QCTS_CLAIM_BIT_EXACT)) return std::nullopt;
  const std::vector<double> got = load_doubles(input_.y_dtype, y);
  for (size_t i = 0; i < got.size(); ++i) {
    const Bounded& want = bounds[i];
    const double low = round_to(input_.y_dtype, want.value - kOracle * std::fabs(want.value)),
                 high = round_to(input_.y_dtype, want.value + kOracle * std::fabs(want.value));
    if (std::isnan(want.value) || (got[i] >= low && got[i] <= high)) continue;
    return BrokenClaim{"claims to be bit-exact, but " + place_in_matrix("y", i, input_.weight.n, 0) +
                       " is not the exact sum rounded once: want " + std::to_string(low) + ", got " +
                       std::to_string(got[i])};
  }
  return std::nullopt;
}

std::optional<BrokenClaim> LinearClaims::rows_alone(const std::vector<std::byte>& y) const {
  if (!claims(QCTS_CLAIM_BATCH_INVARIANT) || input_.m <= kFewRows) return std::nullopt;
  KernelInput alone = input_;
  alone.m = 1;
  const size_t rows = static_cast<size_t>(input_.m), x_row = input_.x.size() / rows, y_row = y.size() / rows;
  for (const size_t row : {size_t{0}, rows / 2, rows - 1}) {
    const std::span<const std::byte> of_x = std::span(input_.x).subspan(row * x_row, x_row),
                                     of_batch = std::span(y).subspan(row * y_row, y_row);
    alone.x.assign(of_x.begin(), of_x.end());
    KernelRun run(kernel_, alone, {threads_, 0, 0});
    if (run.supports().status != QCTS_OK) return std::nullopt;
    if (auto broken = differ({of_batch.begin(), of_batch.end()}, run.run(Poison::zeros).y, 1,
                             "claims to be batch-invariant, but row " + std::to_string(row) + " of " +
                                 std::to_string(rows) + " comes out differently on its own"))
      return broken;
  }
  return std::nullopt;
}

std::optional<BrokenClaim> LinearClaims::any_buffers(const std::vector<std::byte>& y,
                                                     const std::vector<std::byte>& other,
                                                     const RunOptions& options,
                                                     const std::string& how) const {
  if (!claims(QCTS_CLAIM_BATCH_INVARIANT)) return std::nullopt;
  if (options.threads != threads_ && !claims(QCTS_CLAIM_THREAD_INVARIANT)) return std::nullopt;
  return differ(y, other, input_.m, "claims to be batch-invariant, but with " + how);
}

std::optional<BrokenClaim> LinearClaims::many_threads(const std::vector<std::byte>& y) const {
  if (!claims(QCTS_CLAIM_THREAD_INVARIANT) || !is_large(input_)) return std::nullopt;
  KernelRun run(kernel_, input_, {kLargeThreads, 0, 0});
  if (run.supports().status != QCTS_OK) return std::nullopt;
  return differ(y, run.run(Poison::zeros).y, input_.m,
                "claims to be thread-invariant, but with " + std::to_string(kLargeThreads) + " threads");
}

std::optional<BrokenClaim> LinearClaims::differ(const std::vector<std::byte>& want,
                                                const std::vector<std::byte>& got, int64_t rows,
                                                const std::string& otherwise) const {
  const Comparison compared = compare_bitwise(input_.y_dtype, want, got);
  if (compared.equal()) return std::nullopt;
  const auto columns = static_cast<int64_t>(want.size() / dtype_bytes(input_.y_dtype)) / rows;
  Mismatch mismatch = mismatch_of(compared, place_in_matrix("y", compared.first, columns, 0));
  std::string reason = otherwise + ": " + mismatch.where + ": " + compared.want + " became " + compared.got;
  return BrokenClaim{std::move(reason), std::move(mismatch)};
}

}  // namespace qcts
