// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/latency/latency_case.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate.h"

namespace qcts {
namespace {

constexpr int64_t kSampledRowsOfX = 4, kSampledOutputs = 256;
constexpr int64_t kSampledOnDevice = 16;  // rows of x, and columns of each
// Larger weights and x of noise repeat a block of rows, whose noise would take longer than the timing.
constexpr int64_t kMaxNoise = int64_t{1} << 26, kBlockRows = 1024;

std::vector<std::byte> noise_rows(uint64_t seed, int64_t rows, int64_t columns, DType dtype, double scale) {
  const int64_t made = rows * columns > kMaxNoise ? std::min(rows, kBlockRows) : rows;
  std::vector<std::byte> bytes = noise_bytes(seed, static_cast<size_t>(made * columns), dtype, scale);
  const size_t block = bytes.size();
  bytes.resize(static_cast<size_t>(rows * columns) * dtype_bytes(dtype));
  for (size_t at = block; at < bytes.size(); at += block)
    std::copy_n(bytes.begin(), std::min(block, bytes.size() - at),
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return bytes;
}

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
                     noise_rows(seed, weight.n, weight.k, weight.dtype, 0x1p-3)}};
  else if (input.op == Op::quantize || input.op == Op::quantize_activation)
    input.planes.clear();
  else
    input.planes = random_planes(*input.scheme, weight, seed);
  if (input.op == Op::unpack) input.planes = input.scheme->pack(input.planes, weight, input.layout);
  if (input.scheme && has_x)
    for (Plane& plane : policy_planes(*input.scheme, weight, input.activation, false))
      input.planes.push_back(std::move(plane));
  if (input.op == Op::quantize) input.x = noise_weight_for(*input.scheme, weight, seed);
  if (has_x) input.x = noise_rows(seed + 1, input.m, weight.k, input.x_dtype, 1.0);
}

// Returns the dtype to which the case's policy quantizes x, or that of x.
DType multiplied_dtype(const Case& c) {
  const DType dtype = c.synthetic()->weight.dtype;
  if (c.activation() == kWeightOnly || c.id.op != Op::linear) return dtype;
  const Matrix x{dtype, c.synthetic()->m, c.synthetic()->weight.k, {}};
  for (const PlaneSpec& spec : c.scheme->activation_specs(x, c.activation()))
    if (spec.name == "qdata") return spec.dtype;
  return dtype;
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

VerifiedKernel::VerifiedKernel(const Case& c, uint64_t seed, uint32_t threads, const PlayedProfiles* played)
    : VerifiedKernel(*c.implementation->kernel, latency_input(c, seed), threads) {
  if (played != nullptr && c.scheme != nullptr) input_.recipe = played->recipe(c.id.op, *c.scheme);
}

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

// Returns the input with only these rows of x.
KernelInput VerifiedKernel::with_rows(const std::set<int64_t>& rows) const {
  KernelInput some = input_;
  const size_t row_bytes = input_.x.size() / static_cast<size_t>(input_.m);
  some.m = static_cast<int64_t>(rows.size());
  some.x.clear();
  for (const int64_t m : rows) {
    const auto first = input_.x.begin() + m * static_cast<std::ptrdiff_t>(row_bytes);
    some.x.insert(some.x.end(), first, first + static_cast<std::ptrdiff_t>(row_bytes));
  }
  return some;
}

std::string VerifiedKernel::verify_linear(const KernelAnswer& answer) const {
  const bool is_on_device = timed_->device() != nullptr;
  const std::set<int64_t> rows_of_x =
      sampled(input_.m, is_on_device ? kSampledOnDevice - 3 : kSampledRowsOfX);
  const int64_t columns =
      is_on_device ? kSampledOnDevice - 3 : kSampledOutputs / static_cast<int64_t>(rows_of_x.size()) + 1;
  // Thousands of rows of x would take the oracle longer than all the timing.
  const bool takes_some = is_on_device && !quantizes_rows_together(input_);
  const std::optional<KernelInput> some = takes_some ? std::optional(with_rows(rows_of_x)) : std::nullopt;
  const LinearReference reference(some ? *some : input_, false);
  const LinearStages stages = declared_stages(kernel_, input_.x_dtype);
  std::vector<Bounded> want;
  std::vector<std::byte> got;
  const size_t bytes = dtype_bytes(input_.y_dtype);
  for (const int64_t n : sampled(input_.weight.n, columns)) {
    const std::vector<ExactWeight> row = exact_weight_row(input_, n);
    int64_t place = 0;
    for (const int64_t m : rows_of_x) {
      want.push_back(reference.bounded(row, some ? place++ : m, n, stages));
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
    const std::optional<Mismatch> mismatch =
        compare_activation_planes(quantized_planes(input_), answer.planes);
    return mismatch ? mismatch->where + ": want " + mismatch->want + ", got " + mismatch->got : "";
  }
  if (input_.op == Op::dequantize) {
    const Comparison compared =
        compare_bitwise(input_.weight.dtype, scheme.dequantize(input_.planes, input_.weight), answer.y);
    return compared.equal() ? ""
                            : "element " + std::to_string(compared.first) + ": want " + compared.want +
                                  ", got " + compared.got + compared.problem;
  }
  const Planes want = input_.op == Op::quantize ? quantized_planes(input_)
                      : input_.op == Op::pack   ? scheme.pack(input_.planes, input_.weight, input_.layout)
                                                : scheme.unpack(input_.planes, input_.weight, input_.layout);
  const Layout layout = input_.op == Op::pack ? input_.layout : kPlain;
  const std::optional<Mismatch> mismatch = compare_planes(scheme, input_.weight, layout, want, answer.planes);
  return mismatch ? mismatch->where + ": want " + mismatch->want + ", got " + mismatch->got : "";
}

RoofRequest roof_request(const Case& c, const VerifiedKernel& kernel, uint32_t threads) {
  const TimedKernel& timed = kernel.timed();
  const DType multiplied = multiplied_dtype(c);
  RoofRequest request;
  request.variant = c.implementation->kernel->variant;
  request.int8_x = multiplied == DType::int8 || multiplied == DType::uint8;
  const std::vector<double> codes = c.scheme->codes().values;
  request.integers =
      !codes.empty() && std::ranges::all_of(codes, [](double code) { return code == std::trunc(code); });
  request.nibbles = request.integers && codes.size() <= 16;
  request.x_dtype = timed.device() != nullptr ? multiplied : c.synthetic()->weight.dtype;
  request.stream = {.read_bytes = timed.moved_bytes() - timed.written_bytes(),
                    .write_bytes = timed.written_bytes(),
                    .copies = timed.copies(),
                    .writes_rotate = timed.outputs_rotate(),
                    .threads = threads};
  request.operations = kernel.operations();
  return request;
}

}  // namespace qcts
