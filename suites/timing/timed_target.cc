// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/timed_target.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "kernels/machine/stream.h"
#include "kernels/machine/thread_pool.h"

namespace qcts {
namespace {

constexpr size_t kHugePageBytes = size_t{1} << 21;

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

double us_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double TimedTarget::time_us(size_t first, size_t calls, bool rotate) {
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < calls; ++i) call(rotate ? (first + i) % copies() : first);
  return us_since(start) / static_cast<double>(calls);
}

BigBuffer::BigBuffer(size_t bytes) : bytes_(bytes) {
  const size_t rounded = round_up(std::max<size_t>(bytes, 1), kHugePageBytes);
  data_ = static_cast<std::byte*>(std::aligned_alloc(kHugePageBytes, rounded));
  if (!data_) throw std::bad_alloc();
  ::madvise(data_, rounded, MADV_HUGEPAGE);
  std::memset(data_, 0, rounded);
}

BigBuffer::~BigBuffer() { std::free(data_); }

TimedKernel::TimedKernel(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads)
    : kernel_(kernel),
      input_(input),
      packed_(packed_planes(input)),
      op_(input.op),
      builder_(input, threads, kernel.scheme),
      base_(builder_.problem()) {
  const auto block = [this](const std::vector<std::byte>& bytes) {
    blocks_.emplace_back(bytes.size());
    if (!bytes.empty()) std::memcpy(blocks_.back().data(), bytes.data(), bytes.size());
    io_bytes_ += bytes.size();
    return blocks_.back().data();
  };
  if (!input.x.empty()) {
    if (!x_rotates()) base_.x = x_ = block(input.x);
  }
  if (!input.bias.empty()) base_.bias = block(input.bias);
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
  remote_ = RemoteProvider::kernel_of(kernel);
  add_copies(1);
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

void TimedKernel::add_outputs(size_t copies) {
  uint64_t stride = round_up(y_bytes_, kLineBytes);
  for (const PlaneSpec& spec : out_specs_) stride += round_up(spec.bytes(), kLineBytes);
  blocks_.emplace_back(stride * copies);
  for (size_t c = 0; c < copies; ++c) {
    std::byte* place = blocks_.back().data() + c * stride;
    Output& output = outputs_.emplace_back();
    if (y_bytes_ != 0) output.y = place;
    place += round_up(y_bytes_, kLineBytes);
    for (const PlaneSpec& spec : out_specs_) {
      output.planes.push_back(abi_plane(spec, place));
      place += round_up(spec.bytes(), kLineBytes);
    }
  }
}

void TimedKernel::add_copies(size_t copies) {
  if (outputs_.empty() || outputs_rotate()) add_outputs(outputs_rotate() ? copies : 1);
  uint64_t stride = 0;
  for (const Plane& plane : planes_read()) stride += round_up(plane.bytes.size(), 64);
  if (x_rotates()) stride += round_up(input_.x.size(), 64);
  blocks_.emplace_back(stride * copies);
  for (size_t c = 0; c < copies; ++c) {
    std::byte* place = blocks_.back().data() + c * stride;
    std::vector<qcts_plane>& planes = planes_.emplace_back();
    for (size_t i = 0; i < planes_read().size(); ++i) {
      const Plane& plane = planes_read()[i];
      if (!plane.bytes.empty()) std::memcpy(place, plane.bytes.data(), plane.bytes.size());
      planes.push_back(abi_plane(specs_[i], place));
      place += round_up(plane.bytes.size(), 64);
    }
    Output& output = outputs_[outputs_rotate() ? problems_.size() : 0];
    qcts_problem problem = base_;
    problem.y = output.y;
    problem.out_planes = output.planes.data();
    problem.n_out_planes = static_cast<uint32_t>(output.planes.size());
    problem.planes = planes.data();
    problem.n_planes = static_cast<uint32_t>(planes.size());
    if (x_rotates()) {
      std::memcpy(place, input_.x.data(), input_.x.size());
      problem.x = place;
      if (problems_.empty()) x_ = place;
    }
    problems_.push_back(problem);
  }
}

void TimedKernel::make_ready(size_t copies) {
  if (remote_) {
    remote_copies_ = copies;
    return;
  }
  if (copies > problems_.size()) add_copies(copies - problems_.size());
  if (const uint64_t bytes = provider_workspace_bytes(kernel_, problems_.front());
      bytes != 0 && !workspace_) {
    workspace_ = blocks_.emplace_back(bytes).data();
    for (qcts_problem& problem : problems_) {
      problem.workspace = workspace_;
      problem.workspace_bytes = bytes;
    }
  }
  prepare_all();
}

uint64_t TimedKernel::query_prepared_bytes() {
  if (!remote_) prepared_bytes_ = provider_prepared_bytes(kernel_, problems_.front());
  return prepared_bytes_;
}

void TimedKernel::prepare_one(const qcts_problem& problem, std::byte* place) {
  qcts_problem at_load = problem;
  at_load.x = at_load.bias = nullptr;
  at_load.y = nullptr;
  const auto start = std::chrono::steady_clock::now();
  if (provider_prepare(kernel_, at_load, place) != QCTS_OK)
    throw ProviderFault("prepare() failed on a problem that supports() accepts");
  const double us = us_since(start);
  prepare_us_ = prepare_us_ == 0 ? us : std::min(prepare_us_, us);
}

// If two calls write the same bytes, these hold no address, so the other copies are made by copying: a cache
// of 300 MiB needs 70 copies of 4096 x 4096 int4, and preparing each took longer than all the timing.
void TimedKernel::prepare_all() {
  if (query_prepared_bytes() == 0) return;
  const uint64_t stride = round_up(prepared_bytes_, 64);
  std::byte* const first = prepared_ = blocks_.emplace_back(stride * problems_.size()).data();
  bool alike = false;
  for (size_t i = 0; i < problems_.size(); ++i) {
    std::byte* place = first + i * stride;
    if (alike)
      std::memcpy(place, first, prepared_bytes_);
    else
      prepare_one(problems_[i], place);
    if (i == 1) alike = std::memcmp(place, first, prepared_bytes_) == 0;
    problems_[i].prepared = place;
    problems_[i].prepared_bytes = prepared_bytes_;
  }
}

Support TimedKernel::supports() const { return provider_supports(kernel_, problems_.front()); }

void TimedKernel::call(size_t copy) {
  answered_ = outputs_rotate() ? copy : 0;
  if (provider_run(kernel_, problems_[copy]) != QCTS_OK)
    throw ProviderFault("run() failed on a problem that supports() accepts");
}

void TimedKernel::perturb_x() {
  if (op_ != Op::linear) return;
  const int64_t element = perturbed_++ % base_.k, bytes = base_.ldx_bytes / base_.k;
  for (int64_t m = 0; m < base_.m; ++m)
    x_[m * base_.ldx_bytes + (element + 1) * bytes - 1] ^= std::byte{0x80};
}

void TimedKernel::copy_x_to(std::vector<std::byte>& x) const {
  if (op_ == Op::linear) x.assign(x_, x_ + x.size());
}

double TimedKernel::time_us(size_t first, size_t calls, bool rotate) {
  if (!remote_) {
    perturb_x();
    return TimedTarget::time_us(first, calls, rotate);
  }
  if (!remote_timing_) remote_->owner->begin_timing(*remote_, problems_.front(), remote_copies_);
  remote_timing_ = true;
  return remote_->owner->time_us(first, calls, rotate);
}

KernelAnswer TimedKernel::answer() {
  if (remote_timing_) provider_measures_ = remote_->owner->end_timing();
  remote_timing_ = false;
  KernelAnswer answer;
  const Output& output = outputs_[answered_];
  if (output.y) answer.y.assign(output.y, output.y + y_bytes_);
  for (size_t i = 0; i < out_specs_.size(); ++i) {
    const std::byte* data = static_cast<const std::byte*>(output.planes[i].data);
    answer.planes.push_back(
        {out_specs_[i].name, out_specs_[i].dtype, out_specs_[i].shape, {data, data + out_specs_[i].bytes()}});
  }
  return answer;
}

void TimedKernel::reload_input() {
  if (x_) std::memcpy(x_, input_.x.data(), input_.x.size());
  packed_ = packed_planes(input_);
  for (size_t i = 0; i < planes_read().size(); ++i)
    std::copy(planes_read()[i].bytes.begin(), planes_read()[i].bytes.end(),
              static_cast<std::byte*>(planes_[0][i].data));
  if (prepared_) prepare_one(problems_[0], prepared_);
  constexpr int kPoison = 0xFF;
  for (const Output& output : outputs_) {
    if (output.y) std::memset(output.y, kPoison, y_bytes_);
    for (size_t i = 0; i < out_specs_.size(); ++i)
      std::memset(output.planes[i].data, kPoison, out_specs_[i].bytes());
  }
}

size_t cold_copies(uint64_t bytes, uint64_t held_bytes, uint64_t l3_bytes, uint64_t max_bytes) {
  const uint64_t wanted = 2 * (l3_bytes == 0 ? uint64_t{64} << 20 : l3_bytes);
  const uint64_t copies = round_up(wanted, std::max<uint64_t>(bytes, 1)) / std::max<uint64_t>(bytes, 1) + 1;
  const uint64_t max_copies = std::max<uint64_t>(max_bytes / std::max<uint64_t>(held_bytes, 1), 1);
  const uint64_t count = std::clamp<uint64_t>(copies + 1, 1, std::min<uint64_t>(max_copies, 4095));
  return static_cast<size_t>(count % 2 == 0 ? count - 1 : count);
}

uint64_t copy_budget_bytes() {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  std::ifstream in("/proc/meminfo");
  std::string word;
  while (in >> word) {
    uint64_t kib = 0;
    if (word == "MemAvailable:" && in >> kib) return std::min(kMaxBytes, kib * 1024 / 4);
  }
  return kMaxBytes / 4;
}

}  // namespace qcts
