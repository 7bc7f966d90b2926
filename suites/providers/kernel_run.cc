// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/kernel_run.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "suites/base/process.h"
#include "suites/providers/hosted_provider.h"

namespace qcts {

namespace {

// A child holds the memory that was open when it was born, and does not end with the call.
constexpr std::chrono::milliseconds kMomentOfChildren{100};

// Schemes have no specs for an x without rows. The dimensions that differ between one row and two are those
// of rows.
std::vector<PlaneSpec> specs_without_rows(const KernelInput& input) {
  const auto specs_of = [&](int64_t rows) {
    return input.scheme->activation_specs({input.x_dtype, rows, input.weight.k, {}}, input.activation);
  };
  std::vector<PlaneSpec> specs = specs_of(1);
  const std::vector<PlaneSpec> of_two = specs_of(2);
  for (size_t i = 0; i < specs.size(); ++i)
    for (size_t d = 0; d < specs[i].shape.size(); ++d)
      if (specs[i].shape[d] != of_two[i].shape[d]) specs[i].shape[d] = 0;
  return specs;
}

size_t rounded_up(size_t bytes, uint32_t multiple) {
  return multiple <= 1 ? bytes : (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<PlaneSpec> output_specs(const KernelInput& input) {
  if (input.op == Op::quantize_activation && input.has_no_rows()) return specs_without_rows(input);
  if (input.op == Op::quantize_activation)
    return input.scheme->activation_specs(input.x_matrix(), input.activation);
  return input.scheme->plane_specs(input.weight, input.op == Op::pack ? input.layout : kPlain);
}

KernelRun::~KernelRun() = default;

KernelRun::KernelRun(const qcts_kernel& kernel, const KernelInput& input, const RunOptions& options)
    : kernel_(kernel),
      op_(input.op),
      has_no_rows_(input.has_no_rows()),
      device_(provider_device(kernel)),
      // A buffer that ends with its page may begin at any address.
      flush_(kernel.align_bytes > 1 ? Flush::none : options.flush),
      planes_gone_(options.planes_gone),
      prepares_alone_(options.prepares_alone),
      renamed_(options.renamed && HostedProvider::kernel_of(kernel) != nullptr),
      builder_(input, device_ ? 1 : options.threads),
      problem_(builder_.problem()) {
  if (device_) {
    problem_.device = static_cast<uint32_t>(device_->ordinal()) + 1;
    problem_.device_info = &device_->described();
  }
  add_inputs(input, options);
  add_outputs(input, options);
  facts_ = provider_facts(kernel_, problem_);
  if (device_) {
    status_ = guard("device_status", 1, sizeof(qcts_device_status), sizeof(qcts_device_status), 0,
                    HostAccess::writes);
    problem_.device_status = reinterpret_cast<qcts_device_status*>(status_->data());
  }
  if (const uint64_t bytes = facts_.workspace_bytes) {
    workspace_ = guard("workspace", 1, as_promised(bytes), as_promised(bytes), 0, HostAccess::writes);
    problem_.workspace = workspace_->data();
    problem_.workspace_bytes = bytes;
  }
}

// The ABI promises whole lines of workspace and prepared weight; without them, less of an overrun is missed.
size_t KernelRun::as_promised(uint64_t bytes) const {
  const uint64_t line = device_ ? 256 : 64;
  return flush_ == Flush::none ? bytes : (bytes + line - 1) / line * line;
}

GuardedBuffer* KernelRun::guard(std::string name, size_t rows, size_t row_bytes, size_t stride_bytes,
                                size_t misalign_bytes, HostAccess access) {
  const HostedProvider::Kernel* hosted = HostedProvider::kernel_of(kernel_);
  const size_t row_stride = rows > 1 ? rounded_up(stride_bytes, kernel_.row_align_bytes) : stride_bytes;
  return &buffers_.emplace_back(std::move(name), rows, row_bytes, row_stride,
                                rounded_up(misalign_bytes, kernel_.align_bytes),
                                hosted ? &hosted->owner->memory() : nullptr, access, flush_);
}

// Returns NULL or painted bytes for an empty buffer.
void* KernelRun::address(GuardedBuffer& buffer, const RunOptions& options) {
  return options.empty_has_address ? buffer.start() : buffer.data();
}

// Returns how many of the input's planes are those of its policy, which follow the weight's.
static size_t policy_planes_of(const KernelInput& input) {
  return input.scheme ? input.scheme->policy_specs(input.weight, input.activation).size() : 0;
}

void KernelRun::add_inputs(const KernelInput& input, const RunOptions& options) {
  const auto copy_in = [&](std::string name, const std::vector<std::byte>& bytes, size_t rows, size_t gap,
                           size_t elem_bytes) {
    const size_t row_bytes = bytes.size() / std::max<size_t>(rows, 1);
    GuardedBuffer* buffer = guard(std::move(name), rows, row_bytes, row_bytes + gap * elem_bytes,
                                  options.misalign_inputs() * elem_bytes, HostAccess::reads);
    buffer->write(bytes);
    inputs_.push_back({buffer, bytes});
    return buffer;
  };
  const std::optional<Planes> packed = packed_planes(input);
  const Planes& planes = packed ? *packed : input.planes;
  weight_planes_ = planes.size() - std::min(planes.size(), policy_planes_of(input));
  for (const Plane& plane : planes) in_specs_.push_back({plane.name, plane.dtype, plane.shape});
  for (size_t i = 0; i < planes.size(); ++i) {
    const Plane& plane = planes[i];
    in_planes_.push_back(
        abi_plane(in_specs_[i], copy_in(plane.name, plane.bytes, 1, 0, dtype_bytes(plane.dtype))->data()));
  }
  if (options.planes_reversed) std::ranges::reverse(in_planes_);
  problem_.planes = in_planes_.data();
  problem_.n_planes = static_cast<uint32_t>(in_planes_.size());
  if (!input.x.empty() || has_no_rows_) {
    const size_t rows = static_cast<size_t>(input.has_rows_of_x() ? input.m : input.weight.n);
    GuardedBuffer* x = copy_in("x", input.x, rows, options.gap_elems, dtype_bytes(input.x_dtype));
    problem_.x = address(*x, options);
    problem_.x_dtype = abi_dtype(input.x_dtype);
    if (!has_no_rows_) problem_.ldx_bytes = static_cast<int64_t>(x->stride_bytes());
  }
  if (!input.bias.empty()) {
    problem_.bias = copy_in("bias", input.bias, 1, 0, dtype_bytes(input.bias_dtype))->data();
    problem_.bias_dtype = abi_dtype(input.bias_dtype);
  }
}

void KernelRun::add_outputs(const KernelInput& input, const RunOptions& options) {
  if (op_ == Op::linear || op_ == Op::dequantize) {
    const DType dtype = op_ == Op::linear ? input.y_dtype : input.weight.dtype;
    const size_t rows = static_cast<size_t>(op_ == Op::linear ? input.m : input.weight.n);
    const size_t cols = static_cast<size_t>(op_ == Op::linear ? input.weight.n : input.weight.k);
    const size_t bytes = dtype_bytes(dtype);
    y_ = guard("y", rows, cols * bytes, (cols + options.gap_elems) * bytes,
               options.misalign_outputs() * bytes, HostAccess::writes);
    problem_.y = address(*y_, options);
    problem_.y_dtype = abi_dtype(dtype);
    problem_.ldy_bytes = static_cast<int64_t>(y_->stride_bytes());
    return;
  }
  out_specs_ = output_specs(input);
  for (const PlaneSpec& spec : out_specs_) {
    GuardedBuffer* buffer = guard(spec.name, 1, spec.bytes(), spec.bytes(),
                                  options.misalign_outputs() * dtype_bytes(spec.dtype), HostAccess::writes);
    out_plane_buffers_.push_back(buffer);
    out_planes_.push_back(abi_plane(spec, address(*buffer, options)));
  }
  if (options.planes_reversed) std::ranges::reverse(out_planes_);
  problem_.out_planes = out_planes_.data();
  problem_.n_out_planes = static_cast<uint32_t>(out_planes_.size());
}

bool KernelRun::notices_writes_without_rows() {
  if (!has_no_rows_) return false;
  const auto row_buffer = [&](const GuardedBuffer& buffer) {
    return &buffer == y_ || buffer.name() == "x" ||
           std::ranges::find(out_plane_buffers_, &buffer) != out_plane_buffers_.end();
  };
  bool noticed = false;
  for (GuardedBuffer& buffer : buffers_) {
    if (!row_buffer(buffer) || buffer.data() != nullptr) continue;
    if (!buffer.notices_write_at_start()) return false;
    noticed = true;
  }
  return noticed;
}

void KernelRun::set_input(std::string_view name, std::span<const std::byte> bytes) {
  const auto found =
      std::ranges::find_if(inputs_, [&](const Readable& input) { return input.buffer->name() == name; });
  if (found == inputs_.end()) throw std::logic_error("the problem has no " + std::string(name));
  found->buffer->write(bytes);
  found->bytes.assign(bytes.begin(), bytes.end());
}

bool KernelRun::accepts_other_values() {
  for (Readable& input : inputs_) input.buffer->write(std::vector<std::byte>(input.bytes.size()));
  const Support support = provider_supports(kernel_, problem_);
  for (Readable& input : inputs_) input.buffer->write(input.bytes);
  return support.status == QCTS_OK;
}

void KernelRun::hand_over_prepared(KernelRun& other) {
  other.prepared_ = true;
  other.problem_.prepared = problem_.prepared;
  other.problem_.prepared_bytes = problem_.prepared_bytes;
  if (problem_.prepared != nullptr) overwrite_planes(in_planes_.size());
}

void KernelRun::overwrite_planes(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    Readable& input = inputs_[i];  // the planes come first
    input.bytes.assign(input.bytes.size(), std::byte{0x5a});
    input.buffer->write(input.bytes);
  }
}

void KernelRun::prepare_once() {
  if (prepared_) return;
  prepared_ = true;
  const uint64_t bytes = facts_.prepared_bytes;
  if (bytes == 0) return;
  prepared_buffer_ = guard("prepared", 1, as_promised(bytes), as_promised(bytes), 0, HostAccess::writes);
  fill_prepared();
  if (!planes_gone_) return;
  overwrite_planes(weight_planes_);
  if (flush_ == Flush::none && !device_) move_prepared();
}

// A prepared weight holds no addresses, so a copy of it at another multiple of 64 serves as well.
void KernelRun::move_prepared() {
  constexpr size_t kStep = 64;
  const auto place = [](const void* data) { return reinterpret_cast<uintptr_t>(data) % (2 * kStep); };
  const uint64_t bytes = as_promised(facts_.prepared_bytes) + kStep;
  GuardedBuffer* const copy = guard("prepared", 1, bytes, bytes, 0, HostAccess::writes);
  const size_t offset = place(copy->data()) == place(prepared_buffer_->data()) ? kStep : 0;
  std::vector<std::byte> content(bytes);
  std::ranges::copy(prepared_buffer_->read(), content.begin() + static_cast<ptrdiff_t>(offset));
  copy->write(content);
  problem_.prepared = copy->data() + offset;
  inputs_.push_back({copy, std::move(content)});
}

void KernelRun::prepare_again() {
  if (prepared_buffer_ != nullptr) fill_prepared();
}

void KernelRun::fill_prepared() {
  std::erase_if(inputs_, [&](const Readable& input) { return input.buffer == prepared_buffer_; });
  prepared_buffer_->poison(Poison::nan);
  qcts_problem at_load = problem_;
  at_load.x = at_load.bias = at_load.prepared = nullptr;
  at_load.y = nullptr;
  at_load.prepared_bytes = 0;
  if (prepares_alone_) at_load.threads = 1;
  clear_device_status();
  const qcts_status status = with_device_status(provider_prepare(kernel_, at_load, prepared_buffer_->data()));
  check_untouched();
  if (status == QCTS_FAILED)
    throw FailedFault("prepare() failed on a problem that supports() accepts" + failure());
  if (status != QCTS_OK)
    throw ProviderFault("prepare() failed on a problem that supports() accepts" + failure());
  problem_.prepared = prepared_buffer_->data();
  problem_.prepared_bytes = facts_.prepared_bytes;
  inputs_.push_back({prepared_buffer_, prepared_buffer_->read()});
}

void KernelRun::check_untouched() const {
  for (const GuardedBuffer& buffer : buffers_)
    if (const auto violation = buffer.violation())
      throw OverrunFault("wrote outside its buffers: " + *violation);
  for (const Readable& input : inputs_)
    if (!input.buffer->holds(input.bytes)) throw OverrunFault("wrote into its input " + input.buffer->name());
}

void KernelRun::poison_outputs(Poison poison, const KernelAnswer* previous) {
  for (GuardedBuffer& buffer : buffers_) buffer.paint(poison);
  prepare_once();
  if (workspace_ && !keeps_workspace_) workspace_->poison(poison);
  if (y_)
    y_->poison(poison, previous ? std::span<const std::byte>(previous->y) : std::span<const std::byte>());
  for (size_t i = 0; i < out_plane_buffers_.size(); ++i)
    out_plane_buffers_[i]->poison(poison, previous ? std::span<const std::byte>(previous->planes[i].bytes)
                                                   : std::span<const std::byte>());
  clear_device_status();
}

qcts_status KernelRun::attempt(Poison poison, const KernelAnswer* previous) {
  poison_outputs(poison, previous);
  qcts_problem asked = problem_;
  if (renamed_) asked.scheme_name = "a_name_for_messages";
  const qcts_status status = with_device_status(provider_run(kernel_, asked, std::exchange(has_run_, true)));
  check_untouched();
  return status;
}

void KernelRun::clear_device_status() {
  if (status_) status_->poison(Poison::zeros);
}

qcts_status KernelRun::with_device_status(qcts_status status) {
  device_failure_.clear();
  if (!status_) return status;
  qcts_device_status said;
  std::memcpy(&said, status_->read().data(), sizeof said);
  if (status != QCTS_OK || said.status == QCTS_OK) return status;
  device_failure_ =
      ": device_status is " + std::to_string(said.status) + " at place " + std::to_string(said.place);
  return QCTS_FAILED;
}

std::string KernelRun::failure() const {
  return device_failure_.empty() ? provider_failure(kernel_) : device_failure_;
}

KernelAnswer KernelRun::run(Poison poison, const KernelAnswer* previous) {
  const qcts_status status = attempt(poison, previous);
  const std::string what =
      "run() returned " + std::to_string(static_cast<int>(status)) + " on a problem that supports() accepts";
  if (status == QCTS_FAILED) throw FailedFault(what + failure());
  if (status != QCTS_OK) throw ProviderFault(what);
  return answer_now();
}

const qcts_problem& KernelRun::poisoned(Poison poison) {
  poison_outputs(poison, nullptr);
  return problem_;
}

KernelAnswer KernelRun::answer() const {
  check_untouched();
  return answer_now();
}

void KernelRun::run_flushed() {
  poison_outputs(Poison::zeros, nullptr);
  const qcts_status status = provider_run_flushed(kernel_, problem_);
  check_untouched();
  if (status != QCTS_OK)
    throw ProviderFault("run() returned " + std::to_string(static_cast<int>(status)) +
                        " to a caller that flushes subnormals to zero" + failure());
}

void KernelRun::capture() {
  poison_outputs(Poison::nan, nullptr);
  provider_capture(kernel_, problem_);
  check_untouched();
}

KernelAnswer KernelRun::replay(Poison poison) {
  poison_outputs(poison, nullptr);
  provider_replay(kernel_, problem_);
  check_untouched();
  if (with_device_status(QCTS_OK) != QCTS_OK) throw FailedFault("the replay failed" + failure());
  return answer_now();
}

KernelAnswer KernelRun::answer_now() const {
  KernelAnswer answer;
  if (y_) answer.y = y_->read();
  for (size_t i = 0; i < out_specs_.size(); ++i)
    answer.planes.push_back(
        {out_specs_[i].name, out_specs_[i].dtype, out_specs_[i].shape, out_plane_buffers_[i]->read()});
  return answer;
}

void KernelRun::check_unchanged(const KernelAnswer& answer) const {
  const auto check = [](const GuardedBuffer& buffer, std::span<const std::byte> bytes) {
    if (!buffer.holds(bytes)) throw ProviderFault(buffer.name() + " changed after run() had returned");
  };
  if (y_) check(*y_, answer.y);
  for (size_t i = 0; i < out_plane_buffers_.size(); ++i)
    check(*out_plane_buffers_[i], answer.planes[i].bytes);
}

void KernelRun::check_unchanged_by_children(const KernelAnswer& answer) const {
  const HostedProvider::Kernel* hosted = HostedProvider::kernel_of(kernel_);
  if (hosted && !children_of(hosted->owner->pid()).empty()) std::this_thread::sleep_for(kMomentOfChildren);
  check_unchanged(answer);
}

}  // namespace qcts
