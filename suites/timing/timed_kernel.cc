// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/timed_kernel.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "reference/numerics/noise.h"
#include "suites/providers/provider_call.h"
#include "suites/timing/stats.h"
#include "suites/timing/timed_kernel_parts.h"

namespace qcts {
namespace {

constexpr size_t kMaxCalls = 4096, kMaxDeviceCalls = 8192, kNotedPlaces = 64;
// The memory's speed changes from one millisecond to the next, so samples are short, and the road is
// subtracted from them. In runs of a second, samples of 300 us find a kernel 3 % slower in 95 %, of 1 ms in
// 81 %, of 100 us in 78 %.
constexpr double kGoodBatchUs = 300, kBatchOverRoad = 30;
constexpr size_t kBatchesARoad = 4;
constexpr int kRoadTrials = 9;

}  // namespace

TimedKernel::TimedKernel(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads)
    : kernel_(kernel),
      input_(input),
      memory_(provider_memory(kernel)),
      device_(provider_device(kernel)),
      operands_(operands_in(provider_device_memory(kernel))),
      packed_(packed_planes(input)),
      op_(input.op),
      builder_(input, device_ ? 1 : threads, kernel.scheme),
      base_(builder_.problem()),
      remote_(RemoteProvider::kernel_of(kernel)) {
  if (device_) {
    base_.device = static_cast<uint32_t>(device_->ordinal()) + 1;
    base_.device_info = &device_->described();
    std::byte* const status =
        add_block(sizeof(qcts_device_status), "device_status", HostAccess::writes).data();
    operands_->fill(status, sizeof(qcts_device_status), std::byte{0});
    base_.device_status = reinterpret_cast<qcts_device_status*>(status);
  }
  io_bytes_ = (x_rotates() ? 0 : input.x.size()) + input.bias.size();
  if (!input.bias.empty()) {
    std::byte* const bias = add_block(input.bias.size(), "bias", HostAccess::reads).data();
    operands_->write(bias, input.bias);
    base_.bias = bias;
  }
  if (input.has_y()) {
    written_bytes_ = y_bytes_ = static_cast<size_t>(input.y_rows() * base_.ldy_bytes);
  } else {
    out_specs_ = output_specs(input);
    for (const PlaneSpec& spec : out_specs_) written_bytes_ += spec.bytes();
  }
  io_bytes_ += written_bytes_;
  for (const Plane& plane : planes_read()) {
    specs_.push_back({plane.name, plane.dtype, plane.shape});
    weight_bytes_ += plane.bytes.size();
  }
  if (x_rotates()) weight_bytes_ += input.x.size();
  const bool is_plain = !packed_ && (op_ == Op::pack || input.layout == kPlain);
  has_varied_codes_ = is_plain && !remote_ && code_row_bytes() != 0;
  if (op_ == Op::linear) {
    pool_ = input.x;
    const std::vector<std::byte> more = noise_bytes(random_(), kPoolElements, input.x_dtype);
    pool_.insert(pool_.end(), more.begin(), more.end());
    reserve_slots(1);
  }
  add_copies(1);
  last_calls_ = {{0, 0}};
}

BigBuffer& TimedKernel::add_block(size_t bytes, const char* name, HostAccess access) {
  return blocks_.emplace_back(bytes, name, access, memory_);
}

// Returns 0 if the first plane is not one of codes by row.
size_t TimedKernel::code_row_bytes() const {
  if (input_.planes.empty()) return 0;
  const Plane& codes = input_.planes.front();
  const bool by_row = codes.shape.size() == 2 && codes.shape[0] == input_.weight.n && codes.shape[0] > 1;
  return by_row ? codes.bytes.size() / static_cast<size_t>(codes.shape[0]) : 0;
}

// Rows of the input, or elements of an only row.
size_t TimedKernel::x_unit_bytes() const {
  const size_t rows = static_cast<size_t>(input_.x_rows());
  return rows > 1 ? input_.x.size() / rows : dtype_bytes(input_.x_dtype);
}

uint64_t TimedKernel::weight_bytes() const {
  return prepared_bytes_ == 0 ? weight_bytes_ : std::min(weight_bytes_, prepared_bytes_);
}

uint64_t TimedKernel::copied_bytes() const {
  return weight_bytes() + (outputs_rotate() ? written_bytes_ : 0);
}

uint64_t TimedKernel::held_bytes() const {
  return weight_bytes_ + prepared_bytes_ + (outputs_rotate() ? written_bytes_ : 0);
}

uint64_t TimedKernel::padded(uint64_t bytes) const {
  const uint64_t unit = operands_->alignment();
  return (bytes + unit - 1) / unit * unit;
}

void TimedKernel::reserve_slots(size_t count) {
  if (count <= slots_) return;
  x_slots_.reset();
  y_slots_.reset();
  x_slots_.emplace(padded(input_.x.size()) * count, "x", HostAccess::reads, memory_);
  y_slots_.emplace(padded(y_bytes_) * count, "y", HostAccess::writes, memory_);
  for (size_t slot = 0; slot < (device_ ? 1 : count); ++slot)
    operands_->write(x_slots_->data() + slot * padded(input_.x.size()), input_.x);
  operands_->finish();
  slots_ = count;
  graphs_ = {};  // the earlier ones have other addresses
}

qcts_problem TimedKernel::problem_of(const TimedCall& call) const {
  const Copy& copy = copies_[call.copy];
  qcts_problem problem = base_;
  problem.planes = copy.planes.data();
  problem.n_planes = static_cast<uint32_t>(copy.planes.size());
  problem.out_planes = copy.out_planes.data();
  problem.n_out_planes = static_cast<uint32_t>(copy.out_planes.size());
  problem.x = copy.x;
  problem.y = copy.y;
  if (op_ == Op::linear) {
    if (!input_.x.empty()) problem.x = x_slots_->data() + call.slot * padded(input_.x.size());
    problem.y = y_slots_->data() + call.slot * padded(y_bytes_);
  }
  problem.prepared = copy.prepared;
  problem.prepared_bytes = copy.prepared ? prepared_bytes_ : 0;
  return problem;
}

void TimedKernel::make_ready(size_t copies) {
  if (remote_) {
    remote_copies_ = copies;
    return;
  }
  if (copies > copies_.size()) add_copies(copies - copies_.size());
  if (const uint64_t bytes = provider_workspace_bytes(kernel_, problem_of({0, 0}));
      bytes != 0 && base_.workspace == nullptr) {
    base_.workspace = add_block(bytes, "workspace", HostAccess::writes).data();
    base_.workspace_bytes = bytes;
  }
  prepare_all();
  for (int i = 0; i < kRoadTrials && !device_; ++i) time_road();
}

void TimedKernel::time_road() {
  if (memory_) road_us_.push_back(provider_run_batch(kernel_, {}, [] {}).wall_us);
}

double TimedKernel::road_us() const { return road_us_.empty() ? 0 : median(road_us_); }

// The road of one batch may be shorter than the median.
double TimedKernel::without_road(double wall_us) const { return std::max(wall_us - road_us(), wall_us / 2); }

uint64_t TimedKernel::query_prepared_bytes() {
  if (!remote_) prepared_bytes_ = provider_prepared_bytes(kernel_, problem_of({0, 0}));
  return prepared_bytes_;
}

Support TimedKernel::supports() const { return provider_supports(kernel_, problem_of({0, 0})); }

void TimedKernel::call(size_t copy) {
  check_noted();
  last_calls_ = {{copy, op_ == Op::linear ? 0 : copy}};
  if (provider_run(kernel_, problem_of(last_calls_.back())) != QCTS_OK)
    throw ProviderFault("run() failed on a problem that supports() accepts");
  check_device_status();
}

size_t TimedKernel::max_calls(bool rotate) const {
  if (remote_) return SIZE_MAX;
  if (op_ == Op::linear && device_)
    return std::clamp<size_t>(device_bytes() / 2 / (padded(input_.x.size()) + padded(y_bytes_)), 2,
                              kMaxDeviceCalls + 1) -
           1;
  if (op_ == Op::linear) return kMaxCalls;
  return rotate ? std::min(copies_.size(), kMaxCalls) : 1;
}

double TimedKernel::min_sample_us() const {
  if (device_) return kDeviceBatchUs;
  return std::max(TimedTarget::min_sample_us(), kBatchOverRoad * road_us());
}

double TimedKernel::good_sample_us() const {
  if (device_) return kDeviceBatchUs;
  return memory_ || remote_ ? std::max(kGoodBatchUs, min_sample_us()) : min_sample_us();
}

double TimedKernel::cpu_seconds() const { return provider_cpu_seconds(kernel_); }

std::vector<qcts_problem> TimedKernel::stage(size_t first, size_t calls, bool rotate) {
  check_noted();
  if (op_ == Op::linear) reserve_slots(calls + 1);  // one for the call that wakes
  last_calls_.clear();
  std::vector<qcts_problem> problems;
  for (size_t i = 0; i < calls; ++i) {
    const size_t copy = rotate ? (first + i) % copies() : first;
    last_calls_.push_back({copy, op_ == Op::linear ? i : copy});
    problems.push_back(problem_of(last_calls_.back()));
  }
  return problems;
}

void TimedKernel::note_outputs() {
  noted_.clear();
  const auto note = [&](const void* data, size_t bytes) {
    const std::byte* const place = static_cast<const std::byte*>(data) + random_() % bytes;
    noted_.push_back({place, operands_->value_at<std::byte>(place)});
  };
  for (size_t i = 0; i < kNotedPlaces; ++i) {
    const qcts_problem problem = problem_of(last_calls_[random_() % last_calls_.size()]);
    if (y_bytes_ != 0) note(problem.y, y_bytes_);
    for (size_t p = 0; p < out_specs_.size(); ++p)
      if (out_specs_[p].bytes() != 0) note(problem.out_planes[p].data, out_specs_[p].bytes());
  }
}

void TimedKernel::check_noted() {
  for (const Noted& noted : std::exchange(noted_, {}))
    if (operands_->value_at<std::byte>(noted.place) != noted.byte)
      throw ProviderFault("an output changed after run() had returned");
}

double TimedKernel::time_us(size_t first, size_t calls, bool rotate) {
  if (device_) return time_on_device_us(calls, rotate);
  return remote_ ? time_remote_us(first, calls, rotate) : time_slowed_us(first, calls, rotate, 0);
}

void TimedKernel::wake(size_t copy) {
  if (remote_)
    time_remote_us(copy, 1, false);
  else if (!device_)  // there, each batch begins with a graph that is not timed
    awake_copy_ = copy;
}

double TimedKernel::time_slowed_us(size_t first, size_t calls, bool rotate, double part) {
  std::vector<qcts_problem> problems = stage(first, calls, rotate);
  const size_t n_awake = awake_copy_ ? 1 : 0;
  if (awake_copy_) problems.insert(problems.begin(), problem_of({*std::exchange(awake_copy_, {}), calls}));
  const BatchTime time = provider_run_batch(
      kernel_, problems, [this] { renew(); }, n_awake, part);
  spent_.wall_us += time.wall_us;
  spent_.cpu_us += time.cpu_us;
  note_outputs();
  if (after_batch_) after_batch_(time.wall_us);
  if (++batches_ % kBatchesARoad == 0) time_road();
  return without_road(time.wall_us) / static_cast<double>(calls);
}

double TimedKernel::time_remote_us(size_t first, size_t calls, bool rotate) {
  if (!remote_timing_) remote_->owner->begin_timing(*remote_, problem_of({0, 0}), remote_copies_);
  remote_timing_ = true;
  const auto start = std::chrono::steady_clock::now();
  const double us = remote_->owner->time_us(first, calls, rotate);
  const double wall_us = us_since(start);
  if (wall_us > kGoodBatchUs / 2) {  // shorter ones are mostly the way there and back
    remote_wall_us_ += wall_us;
    remote_told_us_ += us * static_cast<double>(calls);
  }
  return us;
}

KernelAnswer TimedKernel::answer(const TimedCall& call) {
  check_noted();
  if (remote_timing_) provider_measures_ = remote_->owner->end_timing();
  remote_timing_ = false;
  const qcts_problem problem = problem_of(call);
  KernelAnswer answer;
  if (y_bytes_ != 0) {
    answer.y.resize(y_bytes_);
    read_y(call, 0, answer.y);
  }
  for (size_t i = 0; i < out_specs_.size(); ++i) {
    std::vector<std::byte> bytes(out_specs_[i].bytes());
    operands_->read(static_cast<const std::byte*>(problem.out_planes[i].data), bytes);
    answer.planes.push_back({out_specs_[i].name, out_specs_[i].dtype, out_specs_[i].shape, std::move(bytes)});
  }
  return answer;
}

void TimedKernel::read_x(const TimedCall& call, size_t offset_bytes, std::span<std::byte> to) const {
  operands_->read(static_cast<const std::byte*>(problem_of(call).x) + offset_bytes, to);
}

void TimedKernel::read_y(const TimedCall& call, size_t offset_bytes, std::span<std::byte> to) const {
  operands_->read(static_cast<const std::byte*>(problem_of(call).y) + offset_bytes, to);
}

void TimedKernel::read_input(const TimedCall& call, KernelInput& input) const {
  if (!input_.x.empty()) {
    input.x.resize(input_.x.size());
    read_x(call, 0, input.x);
  }
  if (!has_varied_codes_) return;
  input.planes[0].bytes.resize(specs_[0].bytes());
  operands_->read(static_cast<const std::byte*>(copies_[call.copy].planes[0].data), input.planes[0].bytes);
}

void TimedKernel::read_code_row(const TimedCall& call, int64_t n, KernelInput& input) const {
  if (!has_varied_codes_) return;
  const size_t bytes = code_row_bytes(), at = static_cast<size_t>(n) * bytes;
  const auto* codes = static_cast<const std::byte*>(copies_[call.copy].planes[0].data);
  operands_->read(codes + at, std::span(input.planes[0].bytes).subspan(at, bytes));
}

void TimedKernel::reload_input() {
  check_noted();
  packed_ = packed_planes(input_);
  fill_copy(0);
  const qcts_problem problem = problem_of({0, 0});
  if (op_ == Op::linear) operands_->write(static_cast<std::byte*>(const_cast<void*>(problem.x)), input_.x);
  operands_->finish();
  if (copies_[0].prepared) prepare_one(0, copies_[0].prepared);
  operands_->fill(static_cast<std::byte*>(problem.y), y_bytes_, kTimedPoison);
  for (size_t i = 0; i < out_specs_.size(); ++i)
    operands_->fill(static_cast<std::byte*>(problem.out_planes[i].data), out_specs_[i].bytes(), kTimedPoison);
  operands_->finish();
}

}  // namespace qcts
