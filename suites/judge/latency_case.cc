// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/latency_case.h"

#include <algorithm>
#include <set>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate.h"

namespace qcts {
namespace {

constexpr int64_t kSampledRowsOfX = 4, kSampledOutputs = 256;

KernelInput empty_input(const Case& c) {
  if (!c.synthetic()) throw std::logic_error(c.id.text() + " has no synthetic input");
  KernelInput input;
  input.op = c.id.op;
  input.scheme = c.scheme;
  input.weight = c.synthetic()->weight;
  input.layout = c.layout();
  input.x_dtype = input.y_dtype = input.bias_dtype = input.weight.dtype;
  return input;
}

// Fills in the data of an input whose operation, shape, policy and m are set. Another seed gives other data
// of the same sizes.
void fill(uint64_t seed, KernelInput& input) {
  const WeightShape& weight = input.weight;
  const bool has_x = input.has_rows_of_x();
  if (!input.scheme)
    input.planes = {{"w",
                     weight.dtype,
                     {weight.n, weight.k},
                     noise_bytes(seed, static_cast<size_t>(weight.n * weight.k), weight.dtype, 0x1p-3)}};
  else if (input.op == Op::quantize || input.op == Op::quantize_activation)
    input.planes.clear();
  else
    input.planes = random_planes(*input.scheme, weight, seed);
  if (input.op == Op::unpack) input.planes = input.scheme->pack(input.planes, weight, input.layout);
  if (input.scheme && has_x)
    for (Plane& plane : policy_planes(*input.scheme, weight, input.activation, false))
      input.planes.push_back(std::move(plane));
  if (input.op == Op::quantize) input.x = noise_weight_for(*input.scheme, weight, seed);
  if (has_x) input.x = noise_bytes(seed + 1, static_cast<size_t>(input.m * weight.k), input.x_dtype);
}

std::set<int64_t> sampled(int64_t count, int64_t max_count) {
  std::set<int64_t> rows;
  for (int64_t i = 0; i < std::min(count, max_count); ++i)
    rows.insert(i * count / std::min(count, max_count));
  for (int64_t i = std::max<int64_t>(count - 3, 0); i < count; ++i) rows.insert(i);
  return rows;
}

}  // namespace

KernelInput latency_input(const Case& c, uint64_t seed) {
  KernelInput input = empty_input(c);
  input.activation = c.activation();
  if (input.has_rows_of_x()) input.m = c.synthetic()->m;
  fill(seed, input);
  return input;
}

KernelInput dense_latency_input(const Case& c, uint64_t seed) {
  KernelInput input = empty_input(c);
  input.scheme = nullptr;
  input.m = c.synthetic()->m;
  fill(seed, input);
  return input;
}

VerifiedKernel::VerifiedKernel(const qcts_kernel& kernel, KernelInput input, uint32_t threads)
    : kernel_(kernel),
      input_(std::move(input)),
      timed_(std::make_unique<TimedKernel>(kernel_, input_, threads)) {}

VerifiedKernel::VerifiedKernel(const Case& c, uint64_t seed, uint32_t threads)
    : VerifiedKernel(*c.implementation->kernel, latency_input(c, seed), threads) {}

double VerifiedKernel::operations() const {
  if (input_.op != Op::linear) return 0;
  return 2.0 * static_cast<double>(input_.m) * static_cast<double>(input_.weight.n) *
         static_cast<double>(input_.weight.k);
}

std::string VerifiedKernel::make_and_verify(size_t copies) {
  timed_->make_ready(copies);
  timed_->call(0);
  return verify();
}

std::string VerifiedKernel::verify_on_other_data(uint64_t seed) {
  fill(seed, input_);
  timed_->reload_input();
  timed_->call(0);
  return verify();
}

void VerifiedKernel::check_batches() {
  if (input_.op != Op::linear || timed_->timed_by_provider()) return;
  drawn_ = std::make_unique<DrawnOutputs>(kernel_, input_, *timed_);
  timed_->after_batch([this](double us) { drawn_->check(us); });
}

uint64_t VerifiedKernel::finish_batches() {
  if (!drawn_) return 0;
  timed_->after_batch({});
  return drawn_->finish();
}

std::string VerifiedKernel::verify_linear(const KernelAnswer& answer) const {
  const LinearReference reference(input_, false);
  const LinearStages stages = declared_stages(kernel_, input_.x_dtype);
  std::vector<Bounded> want;
  std::vector<std::byte> got;
  const size_t bytes = dtype_bytes(input_.y_dtype);
  const std::set<int64_t> rows_of_x = sampled(input_.m, kSampledRowsOfX);
  const int64_t columns = kSampledOutputs / static_cast<int64_t>(rows_of_x.size()) + 1;
  for (const int64_t n : sampled(input_.weight.n, columns)) {
    const std::vector<ExactWeight> row = exact_weight_row(input_, n);
    for (const int64_t m : rows_of_x) {
      want.push_back(reference.bounded(row, m, n, stages));
      const std::byte* element = answer.y.data() + static_cast<size_t>(m * input_.weight.n + n) * bytes;
      got.insert(got.end(), element, element + bytes);
    }
  }
  const BoundedComparison compared = compare_bounded(want, input_.y_dtype, got);
  if (compared.equal()) return {};
  return std::to_string(compared.differing) + " of " + std::to_string(compared.total) +
         " sampled outputs are wrong: want " + compared.want + ", got " + compared.got + compared.problem;
}

std::string VerifiedKernel::verify() {
  const std::vector<TimedCall>& calls = timed_->last_calls();
  const TimedCall call = calls[random_() % calls.size()];
  timed_->read_input(call, input_);
  const KernelAnswer answer = timed_->answer(call);
  if (input_.op == Op::linear) return verify_linear(answer);
  const Scheme& scheme = *input_.scheme;
  if (input_.op == Op::quantize_activation) {
    const std::optional<Mismatch> mismatch = compare_activation_planes(
        scheme.quantize_activation(input_.x_matrix(), input_.activation, input_.planes), answer.planes);
    return mismatch ? mismatch->where + ": want " + mismatch->want + ", got " + mismatch->got : "";
  }
  if (input_.op == Op::dequantize) {
    const Comparison compared =
        compare_bitwise(input_.weight.dtype, scheme.dequantize(input_.planes, input_.weight), answer.y);
    return compared.equal() ? ""
                            : "element " + std::to_string(compared.first) + ": want " + compared.want +
                                  ", got " + compared.got + compared.problem;
  }
  const Planes want =
      input_.op == Op::quantize
          ? scheme.quantize({input_.weight.dtype, input_.weight.n, input_.weight.k, input_.x}, input_.layout)
      : input_.op == Op::pack ? scheme.pack(input_.planes, input_.weight, input_.layout)
                              : scheme.unpack(input_.planes, input_.weight, input_.layout);
  const Layout layout = input_.op == Op::pack ? input_.layout : kPlain;
  const std::optional<Mismatch> mismatch = compare_planes(scheme, input_.weight, layout, want, answer.planes);
  return mismatch ? mismatch->where + ": want " + mismatch->want + ", got " + mismatch->got : "";
}

}  // namespace qcts
