// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/latency/drawn_outputs.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

// The outputs of a column share the exact row of the weight, which costs as much as their sums. Where all
// rows of x are quantized together, they share that too, which costs much more.
constexpr double kShareOfTime = 0.1;
constexpr int64_t kRowsOfColumn = 4, kRowsTogether = 64;

}  // namespace

bool quantizes_rows_together(const KernelInput& input) {
  if (input.scheme == nullptr || input.activation == kWeightOnly || input.m == 1) return false;
  return std::ranges::any_of(
      input.scheme->activation_specs(input.x_matrix(), input.activation),
      [&](const PlaneSpec& spec) { return spec.shape.empty() || spec.shape.front() != input.m; });
}

std::vector<ExactWeight> exact_weight_row(const KernelInput& input, int64_t n) {
  std::vector<ExactWeight> row(static_cast<size_t>(input.weight.k));
  if (input.scheme) {
    input.scheme->exact_row(input.planes, input.weight, n, row);
    return row;
  }
  for (size_t k = 0; k < row.size(); ++k) {
    row[k].code = row[k].product =
        load_float(input.weight.dtype, input.planes[0].bytes, static_cast<size_t>(n) * row.size() + k);
    row[k].scale = 1;
  }
  return row;
}

DrawnOutputs::DrawnOutputs(const qcts_kernel& kernel, KernelInput& input, TimedKernel& timed)
    : input_(input),
      some_rows_(input),
      timed_(timed),
      stages_(declared_stages(kernel, input.x_dtype)),
      needs_all_rows_(quantizes_rows_together(input)) {}

void DrawnOutputs::check(double us) {
  const auto wanted = static_cast<size_t>(kShareOfTime * us / each_us_);
  check_count(std::clamp(wanted, kMinOfBatch, kMaxOfBatch));
}

uint64_t DrawnOutputs::finish() {
  while (count_ < kMinOfCase) check_count(kMinOfCase - count_);
  return count_;
}

// All bytes are taken before any is judged: a kernel that goes on working after the batch gains nothing.
void DrawnOutputs::check_count(size_t count) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Drawn> all;
  size_t drawn = 0;
  while (drawn < count) {
    all.push_back(draw());
    drawn += all.back().rows.size();
  }
  for (const Drawn& each : all) judge(each);
  for (const Drawn& each : all)
    if (read(each) != each.bytes) throw ProviderFault("y changed after run() had returned");
  count_ += drawn;
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  each_us_ = spent.count() / static_cast<double>(drawn);
}

DrawnOutputs::Drawn DrawnOutputs::draw() {
  const std::vector<TimedCall>& calls = timed_.last_calls();
  Drawn drawn;
  drawn.call = calls[random_() % calls.size()];
  drawn.n = static_cast<int64_t>(random_() % static_cast<uint64_t>(input_.weight.n));
  std::set<int64_t> rows;
  for (int64_t i = 0; i < std::min(needs_all_rows_ ? kRowsTogether : kRowsOfColumn, input_.m); ++i)
    rows.insert(static_cast<int64_t>(random_() % static_cast<uint64_t>(input_.m)));
  drawn.rows.assign(rows.begin(), rows.end());
  drawn.bytes = read(drawn);
  return drawn;
}

std::vector<std::byte> DrawnOutputs::read(const Drawn& drawn) const {
  const size_t bytes = dtype_bytes(input_.y_dtype);
  std::vector<std::byte> read(drawn.rows.size() * bytes);
  for (size_t i = 0; i < drawn.rows.size(); ++i)
    timed_.read_y(drawn.call, static_cast<size_t>(drawn.rows[i] * input_.weight.n + drawn.n) * bytes,
                  std::span(read).subspan(i * bytes, bytes));
  return read;
}

void DrawnOutputs::judge(const Drawn& drawn) {
  const size_t row_bytes = timed_.x_bytes() / static_cast<size_t>(input_.m);
  some_rows_.m = needs_all_rows_ ? input_.m : static_cast<int64_t>(drawn.rows.size());
  some_rows_.x.resize(static_cast<size_t>(some_rows_.m) * row_bytes);
  if (needs_all_rows_) timed_.read_x(drawn.call, 0, some_rows_.x);
  for (size_t i = 0; i < drawn.rows.size() && !needs_all_rows_; ++i)
    timed_.read_x(drawn.call, static_cast<size_t>(drawn.rows[i]) * row_bytes,
                  std::span(some_rows_.x).subspan(i * row_bytes, row_bytes));
  timed_.read_code_row(drawn.call, drawn.n, input_);
  const std::vector<ExactWeight> weights = exact_weight_row(input_, drawn.n);
  const LinearReference reference(some_rows_, false);
  std::vector<Bounded> want;
  for (size_t i = 0; i < drawn.rows.size(); ++i)
    want.push_back(reference.bounded(weights, needs_all_rows_ ? drawn.rows[i] : static_cast<int64_t>(i),
                                     drawn.n, stages_));
  const BoundedComparison compared = compare_bounded(want, input_.y_dtype, drawn.bytes);
  if (compared.equal()) return;
  throw ProviderFault("wrong while timed: y of column " + std::to_string(drawn.n) +
                      ", drawn after a batch: want " + compared.want + ", got " + compared.got +
                      compared.problem);
}

}  // namespace qcts
