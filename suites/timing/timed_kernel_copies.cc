// SPDX-License-Identifier: BSD-3-Clause
// The copies of a timed kernel's operands: how they are laid out, differ, are prepared, and change between
// batches.
#include <cstring>
#include <utility>

#include "suites/providers/provider_call.h"
#include "suites/timing/timed_kernel.h"
#include "suites/timing/timed_kernel_parts.h"

namespace qcts {
namespace {

// Preparing 70 copies of 4096 x 4096 int4, for a cache of 300 MiB, took longer than all the timing.
constexpr double kMaxPrepareUs = 3e5;
constexpr size_t kMaxPrepared = 64, kRenewedUnits = 4;

void write_rotated(Operands& operands, std::span<const std::byte> from, size_t shift_bytes, std::byte* to) {
  operands.write(to, from.subspan(shift_bytes));
  operands.write(to + (from.size() - shift_bytes), from.first(shift_bytes));
}

}  // namespace

void TimedKernel::add_copies(size_t count) {
  uint64_t read = x_rotates() ? padded(input_.x.size()) : 0, written = 0;
  for (const Plane& plane : planes_read()) read += padded(plane.bytes.size());
  if (outputs_rotate()) {
    written = padded(y_bytes_);
    for (const PlaneSpec& spec : out_specs_) written += padded(spec.bytes());
  }
  std::byte* from = add_block(read * count, "planes", HostAccess::reads).data();
  std::byte* to = add_block(written * count, "outputs", HostAccess::writes).data();
  const auto next = [&](std::byte*& place, size_t bytes) {
    return std::exchange(place, place + padded(bytes));
  };
  for (size_t i = 0; i < count; ++i) {
    Copy& copy = copies_.emplace_back();
    for (const PlaneSpec& spec : specs_) copy.planes.push_back(abi_plane(spec, next(from, spec.bytes())));
    if (x_rotates()) copy.x = next(from, input_.x.size());
    if (outputs_rotate() && y_bytes_ != 0) copy.y = next(to, y_bytes_);
    for (const PlaneSpec& spec : out_specs_)
      copy.out_planes.push_back(abi_plane(spec, next(to, spec.bytes())));
    fill_copy(copies_.size() - 1);
  }
  operands_->finish();
}

// Copy 0 is the input itself.
void TimedKernel::fill_copy(size_t index) {
  const Copy& copy = copies_[index];
  const auto shift = [&](size_t bytes, size_t unit_bytes) {
    const size_t units = bytes / unit_bytes;
    return index == 0 || units < 2 ? 0 : (1 + (first_shift_ + index) % (units - 1)) * unit_bytes;
  };
  for (size_t i = 0; i < specs_.size(); ++i) {
    const std::vector<std::byte>& bytes = planes_read()[i].bytes;
    if (bytes.empty()) continue;
    const size_t by = i == 0 && has_varied_codes_ ? shift(bytes.size(), code_row_bytes()) : 0;
    write_rotated(*operands_, bytes, by, static_cast<std::byte*>(copy.planes[i].data));
  }
  if (copy.x && !input_.x.empty())
    write_rotated(*operands_, input_.x, remote_ ? 0 : shift(input_.x.size(), x_unit_bytes()), copy.x);
}

void TimedKernel::prepare_one(size_t index, std::byte* place) {
  qcts_problem at_load = problem_of({index, 0});
  at_load.x = at_load.bias = at_load.prepared = nullptr;
  at_load.prepared_bytes = 0;
  at_load.y = nullptr;
  const auto start = std::chrono::steady_clock::now();
  if (provider_prepare(kernel_, at_load, place) != QCTS_OK)
    throw ProviderFault("prepare() failed on a problem that supports() accepts");
  check_device_status();
  const double us = us_since(start);
  prepare_us_ = prepare_us_ == 0 ? us : std::min(prepare_us_, us);
}

// If two calls for one weight write the same bytes, these hold no address. The weights that there is no time
// to prepare are then copies of the earlier ones.
void TimedKernel::prepare_all() {
  if (query_prepared_bytes() == 0) return;
  const uint64_t stride = padded(prepared_bytes_);
  std::byte* const first = add_block(stride * copies_.size(), "prepared", HostAccess::writes).data();
  const auto start = std::chrono::steady_clock::now();
  const auto prepared = [&](size_t index) {
    std::vector<std::byte> bytes(prepared_bytes_);
    operands_->read(first + index * stride, bytes);
    return bytes;
  };
  bool holds_address = false;
  size_t made = 0;
  for (size_t i = 0; i < copies_.size(); ++i) {
    std::byte* const place = first + i * stride;
    if (i == 1) {
      prepare_one(0, place);
      holds_address = prepared(0) != prepared(1);
    }
    if (holds_address || i < 2 || (i < kMaxPrepared && us_since(start) < kMaxPrepareUs)) {
      prepare_one(i, place);
      made = i + 1;
    } else {
      const size_t same = i % made;
      const auto data = [&](size_t copy, size_t p) {
        return static_cast<std::byte*>(copies_[copy].planes[p].data);
      };
      for (size_t p = 0; p < specs_.size(); ++p)
        operands_->copy(data(i, p), data(same, p), specs_[p].bytes());
      operands_->copy(place, first + same * stride, prepared_bytes_);
    }
  }
  operands_->finish();
  for (size_t i = 0; i < copies_.size(); ++i) copies_[i].prepared = first + i * stride;
}

void TimedKernel::exchange_units(std::byte* data, size_t bytes, size_t unit_bytes) {
  const size_t units = bytes / unit_bytes;
  if (units < 2) return;
  for (size_t i = 0; i < kRenewedUnits; ++i) {
    std::byte *const one = data + random_() % units * unit_bytes, *const other =
                                                                      data + random_() % units * unit_bytes;
    if (one != other) std::swap_ranges(one, one + unit_bytes, other);
  }
}

void TimedKernel::renew() {
  if (device_) return renew_on_device();
  const size_t element_bytes = dtype_bytes(input_.x_dtype);
  for (const TimedCall& call : last_calls_) {
    const Copy& copy = copies_[call.copy];
    if (op_ == Op::linear) {
      const qcts_problem problem = problem_of(call);
      const size_t from = random_() % (kPoolElements + 1) * element_bytes;
      if (!input_.x.empty()) std::memcpy(const_cast<void*>(problem.x), pool_.data() + from, input_.x.size());
      operands_->fill(static_cast<std::byte*>(problem.y), y_bytes_, kTimedPoison);
    } else if (x_rotates()) {
      exchange_units(copy.x, input_.x.size(), x_unit_bytes());
    } else if (has_varied_codes_ && prepared_bytes_ == 0) {
      exchange_units(static_cast<std::byte*>(copy.planes[0].data), specs_[0].bytes(), code_row_bytes());
    }
  }
}

}  // namespace qcts
