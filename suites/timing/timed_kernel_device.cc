// SPDX-License-Identifier: BSD-3-Clause
// A timed kernel on a device: graphs of its calls, and new data for them.
#include <algorithm>
#include <cmath>
#include <string>

#include "suites/providers/provider_call.h"
#include "suites/timing/timed_kernel.h"
#include "suites/timing/timed_kernel_parts.h"

namespace qcts {
namespace {

constexpr int kTriesToFill = 4, kTriesToConfirm = 5;
constexpr size_t kLargeX = size_t{1} << 20;  // bytes

}  // namespace

// Returns the bytes of one window of device memory.
uint64_t TimedKernel::device_bytes() const {
  const DeviceMemory* memory = provider_device_memory(kernel_);
  return memory == nullptr ? 0 : memory->bytes();
}

void TimedKernel::check_device_status() const {
  if (base_.device_status == nullptr) return;
  const auto said =
      operands_->value_at<qcts_device_status>(reinterpret_cast<const std::byte*>(base_.device_status));
  if (said.status == QCTS_OK) return;
  throw ProviderFault("device_status is " + std::to_string(said.status) + " at place " +
                      std::to_string(said.place) + " on a problem that supports() accepts");
}

void TimedKernel::capture_graphs(size_t calls, size_t calls_a_graph, bool rotate) {
  const Graphs wanted{calls, calls_a_graph, rotate};
  if (graphs_ == wanted) return;
  const std::vector<qcts_problem> problems = stage(0, calls, rotate);
  if (!device_graphs_) device_graphs_.emplace(kernel_);
  const uint64_t kernels = device_graphs_->capture(problems, calls_a_graph);
  launches_a_call_ = static_cast<double>(kernels) / static_cast<double>(calls);
  graphs_ = wanted;
}

BatchTime TimedKernel::time_graphs(size_t calls, size_t calls_a_graph, bool rotate) {
  check_noted();
  capture_graphs(calls, calls_a_graph, rotate);
  const BatchTime time = device_graphs_->time([this] { renew(); });
  spent_.wall_us += time.wall_us;
  spent_.cpu_us += time.cpu_us;
  check_device_status();
  note_outputs();
  if (after_batch_) after_batch_(time.wall_us);
  return time;
}

// The first graphs are short, and say how many calls a longer one needs.
void TimedKernel::find_calls_a_graph(bool rotate) {
  size_t calls = 1;
  for (int i = 0; i < kTriesToFill; ++i) {
    const double us = time_graphs(calls, calls, rotate).events_us;
    if (us >= kGraphUs || calls == max_calls(rotate)) break;
    const double wanted = std::ceil(1.1 * kGraphUs * static_cast<double>(calls) / std::max(us, 0.1));
    calls = std::clamp<size_t>(static_cast<size_t>(wanted), calls, max_calls(rotate));
  }
  calls_a_graph_ = calls;
}

// A batch whose time by the events is not confirmed by this process's clock is timed again.
double TimedKernel::time_on_device_us(size_t calls, bool rotate) {
  if (calls_a_graph_ == 0) find_calls_a_graph(rotate);
  // One call is asked for to learn how long calls last. A full graph shows it better, but is too short for a
  // clock that is asked once per batch.
  const bool is_trial = calls == 1 && calls_a_graph_ > 1;
  const size_t timed = is_trial ? calls_a_graph_ : calls;
  const size_t in_graph = std::min(calls_a_graph_, timed), graphs = (timed + in_graph - 1) / in_graph;
  BatchTime time;
  for (int i = 0; i < kTriesToConfirm; ++i) {
    time = time_graphs(timed, in_graph, rotate);
    const GraphBatch batch{time.wall_us, time.events_us, graphs};
    if (is_trial || clock_check_.take(batch, i + 1 == kTriesToConfirm)) break;
  }
  return time.events_us / static_cast<double>(timed);
}

// Small rows of x go to the device together; parts of a large pool are copied there.
void TimedKernel::renew_on_device() {
  if (op_ != Op::linear) throw std::logic_error("only linear is timed on a device");
  const size_t element_bytes = dtype_bytes(input_.x_dtype), x_bytes = input_.x.size();
  const auto from = [&] { return random_() % (kPoolElements + 1) * element_bytes; };
  const size_t slots = graphs_.calls;
  if (x_bytes >= kLargeX) {
    if (!pool_on_device_) {
      pool_on_device_.emplace(pool_.size(), "pool", HostAccess::reads, memory_);
      operands_->write(pool_on_device_->data(), pool_);
    }
    for (size_t i = 0; i < slots; ++i)
      operands_->copy(x_slots_->data() + i * padded(x_bytes), pool_on_device_->data() + from(), x_bytes);
  } else if (x_bytes != 0) {
    std::vector<std::byte> all(slots * padded(x_bytes));
    for (size_t i = 0; i < slots; ++i)
      std::copy_n(pool_.begin() + static_cast<std::ptrdiff_t>(from()), x_bytes,
                  all.begin() + static_cast<std::ptrdiff_t>(i * padded(x_bytes)));
    operands_->write(x_slots_->data(), all);
  }
  operands_->fill(y_slots_->data(), slots * padded(y_bytes_), kTimedPoison);
  operands_->finish();
}

}  // namespace qcts
