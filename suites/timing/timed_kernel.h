// SPDX-License-Identifier: BSD-3-Clause
// A kernel that is timed in its own process (suites/host) by this process's clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "suites/providers/kernel_run.h"
#include "suites/providers/provider_call.h"
#include "suites/providers/remote_provider.h"
#include "suites/timing/big_buffer.h"
#include "suites/timing/clock_check.h"
#include "suites/timing/operands.h"
#include "suites/timing/timed_target.h"

namespace qcts {

// One call of a batch.
struct TimedCall {
  size_t copy = 0;  // of what rotates
  size_t slot = 0;  // linear: of x and y
};

// Runs a kernel on `copies` copies of its outputs and of the data that an operation reads again each time.
// This data is the planes, or the weight that prepare() made from them.
// For quantize and quantize_activation, the data is the floats that they read.
// linear has an x and a y for each call of a batch.
//
// Nothing of a timed batch was seen before, so that no kernel gains by remembering answers. Each call of
// linear has its own x, which is written just before the batch, and copies of a weight have their rows of
// codes in another order. The other operations get copies of which a few rows are exchanged just before the
// batch: writing all of a copy would leave it in the cache. Weights that are prepared, or packed in a layout
// other than "plain", do not change between batches.
//
// Outputs have copies too. The memory probe's output would otherwise stay in the cache.
// A kernel with streaming stores would bypass the cache.
// An example is dequantize of int4, 4096 x 4096, on a core with 32 MiB of L3.
// Its kernel reached 0.56 of the roof with streaming stores and 0.71 without, though it took 951 and 1210 us.
//
// On a device, the operands are in device memory. A batch is a sequence of graphs, each of at least kGraphUs,
// and the host times it by events around each graph. That is a claim, which this process's clock around the
// whole batch has to confirm: clock_check(). The graphs are captured once and launched again on other x.
//
// A kernel of an out-of-process provider is timed by that process: timed_by_provider().
class TimedKernel final : public TimedTarget {
 public:
  TimedKernel(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads);
  Support supports() const;
  // Returns the size of prepare()'s output, or 0 if run reads the planes.
  // Valid only if supports() accepts the problem.
  uint64_t query_prepared_bytes();
  // Makes the kernel ready. Call this once, before the first call.
  // Requires that supports() accepts the problem. Throws std::bad_alloc.
  // Throws ProviderFault if prepare() fails.
  void make_ready(size_t copies);

  void call(size_t copy) override;  // throws ProviderFault for any status other than QCTS_OK
  size_t copies() const override { return remote_ ? remote_copies_ : copies_.size(); }
  double time_us(size_t first, size_t calls, bool rotate) override;
  // As time_us(), in a host that waits for a part of each call's time after it.
  void wake(size_t copy) override;
  double time_slowed_us(size_t first, size_t calls, bool rotate, double part);
  // All calls of a batch differ, which the copies limit for all operations but linear.
  size_t max_calls(bool rotate) const override;
  // In a host: 100 times road_us(), and 1 ms if that is longer.
  double min_sample_us() const override;
  double good_sample_us() const override;
  double cpu_seconds() const override;
  // Returns the median time of the batches without calls that were timed next to the others: the way to the
  // kernel's process and back. Returns 0 for a kernel of this process.
  double road_us() const;
  double without_road(double wall_us) const;  // the calls' part of a batch
  // Called after each batch of time_us(), with its time in microseconds.
  void after_batch(std::function<void(double us)> check) { after_batch_ = std::move(check); }

  // The parts of time_us(): the problems of a batch, new data for them, and after the batch a look at places
  // of the outputs. The next call and the next answer() throw ProviderFault if one has changed since.
  // Requires a kernel that is not timed_by_provider().
  std::vector<qcts_problem> stage(size_t first, size_t calls, bool rotate);
  void renew();
  void note_outputs();

  // The calls of the last batch, or the last call().
  const std::vector<TimedCall>& last_calls() const { return last_calls_; }
  KernelAnswer answer() { return answer(last_calls_.back()); }
  KernelAnswer answer(const TimedCall& call);
  // Read bytes of x and y, from `offset_bytes` on.
  void read_x(const TimedCall& call, size_t offset_bytes, std::span<std::byte> to) const;
  void read_y(const TimedCall& call, size_t offset_bytes, std::span<std::byte> to) const;
  size_t x_bytes() const { return input_.x.size(); }
  // Copies what the call read into an input of the same sizes.
  void read_input(const TimedCall& call, KernelInput& input) const;
  // As read_input(), for only row n of the first plane.
  void read_code_row(const TimedCall& call, int64_t n, KernelInput& input) const;
  // Reads the changed input, which must have the same sizes, into the buffers of copy 0.
  // Then prepares the input again and poisons the outputs.
  // Must not be called for a kernel that is timed_by_provider().
  void reload_input();
  // Returns the bytes of weight that a call reads in one copy.
  // The weight is read as planes, or as prepare()'s output if that is smaller.
  uint64_t weight_bytes() const;
  uint64_t moved_bytes() const { return weight_bytes() + io_bytes_; }
  uint64_t written_bytes() const { return written_bytes_; }
  // Returns the size of one copy: everything that it does not share with the next copy.
  uint64_t copied_bytes() const;
  // Returns the memory that one copy takes, with the planes and the prepared weight, of which a call reads
  // one.
  uint64_t held_bytes() const;
  bool outputs_rotate() const { return op_ != Op::linear; }
  uint64_t prepared_bytes() const { return prepared_bytes_; }
  static constexpr double kGraphUs = 200, kDeviceBatchUs = 20e3;
  // Returns the time for one weight, from the fastest copy; 0 if there is no prepare().
  double prepare_us() const { return prepare_us_; }
  bool timed_by_provider() const { return remote_ != nullptr; }
  // On a device: the GPU, the clocks of the batches, and how many kernels a call launches.
  const Device* device() const { return device_; }
  ClockCheck& clock_check() { return clock_check_; }
  double launches_a_call() const { return launches_a_call_; }
  uint64_t copies_budget_bytes() const { return device_bytes() * 2 / 5; }  // of planes
  // Times one batch of graphs of `calls_a_graph` calls each.
  BatchTime time_graphs(size_t calls, size_t calls_a_graph, bool rotate);
  // Returns the share of the judge's time that the provider says its calls took; 0 if it times nothing.
  double told_share() const { return remote_wall_us_ > 0 ? remote_told_us_ / remote_wall_us_ : 0; }
  // Returns further measures that the provider took: {"benchmark_fn_us": 12.5}. Valid after answer().
  const nlohmann::ordered_json& provider_measures() const { return provider_measures_; }

 private:
  // The data of one copy, in memory of the kernel's process.
  struct Copy {
    std::vector<qcts_plane> planes, out_planes;
    std::byte *x = nullptr, *y = nullptr, *prepared = nullptr;
  };
  const Planes& planes_read() const { return packed_ ? *packed_ : input_.planes; }
  bool x_rotates() const { return op_ == Op::quantize || op_ == Op::quantize_activation; }
  BigBuffer& add_block(size_t bytes, const char* name, HostAccess access);
  void add_copies(size_t copies);
  void fill_copy(size_t index);
  void reserve_slots(size_t count);
  uint64_t padded(uint64_t bytes) const;  // to where the next operand may begin
  qcts_problem problem_of(const TimedCall& call) const;
  void prepare_one(size_t index, std::byte* place);
  void prepare_all();
  void check_noted();
  void exchange_units(std::byte* data, size_t bytes, size_t unit_bytes);
  void time_road();
  double time_remote_us(size_t first, size_t calls, bool rotate);
  double time_on_device_us(size_t calls, bool rotate);
  void find_calls_a_graph(bool rotate);
  uint64_t device_bytes() const;
  void capture_graphs(size_t calls, size_t calls_a_graph, bool rotate);
  void renew_on_device();
  void check_device_status() const;
  size_t x_unit_bytes() const;
  size_t code_row_bytes() const;

  const qcts_kernel& kernel_;
  const KernelInput& input_;
  HostMemory* const memory_;
  const Device* const device_;  // nullptr: the kernel computes on the processor
  const std::unique_ptr<Operands> operands_;
  std::optional<Planes> packed_;
  Op op_;
  ProblemBuilder builder_;
  std::vector<PlaneSpec> specs_, out_specs_;
  std::vector<BigBuffer> blocks_;
  std::optional<BigBuffer> x_slots_, y_slots_;  // linear
  size_t slots_ = 0;
  std::vector<Copy> copies_;
  std::vector<TimedCall> last_calls_;
  struct Noted {
    const std::byte* place;
    std::byte byte;
  };
  std::vector<Noted> noted_;
  qcts_problem base_{};
  std::vector<std::byte> pool_;              // linear: each x is a part of it
  std::optional<BigBuffer> pool_on_device_;  // if x is large
  std::mt19937_64 random_{std::random_device()()};
  const size_t first_shift_ = random_() % (size_t{1} << 20);  // of the rows of the copies
  bool has_varied_codes_ = false;
  uint64_t weight_bytes_ = 0, io_bytes_ = 0, written_bytes_ = 0, prepared_bytes_ = 0;
  double prepare_us_ = 0;
  std::vector<double> road_us_;
  size_t y_bytes_ = 0;
  size_t batches_ = 0;
  std::optional<size_t> awake_copy_;  // of the call with which the next batch begins, untimed
  std::function<void(double)> after_batch_;
  const RemoteProvider::Kernel* remote_ = nullptr;
  size_t remote_copies_ = 1;
  bool remote_timing_ = false;
  double remote_told_us_ = 0, remote_wall_us_ = 0;
  std::optional<DeviceGraphs> device_graphs_;
  struct Graphs {  // what is captured
    size_t calls = 0, calls_a_graph = 0;
    bool rotate = false;
    bool operator==(const Graphs&) const = default;
  };
  Graphs graphs_;
  size_t calls_a_graph_ = 0;  // 0: not yet known
  double launches_a_call_ = 0;
  ClockCheck clock_check_;
  nlohmann::ordered_json provider_measures_ = nlohmann::ordered_json::object();
};

}  // namespace qcts
