// SPDX-License-Identifier: BSD-3-Clause
// Timed targets: kernels that run on rotating copies of their inputs and outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "suites/providers/kernel_run.h"
#include "suites/providers/remote_provider.h"

namespace qcts {

// Memory aligned to 2 MiB, with huge pages requested and every page touched.
class BigBuffer {
 public:
  explicit BigBuffer(size_t bytes);
  ~BigBuffer();
  BigBuffer(BigBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  BigBuffer& operator=(BigBuffer&&) = delete;
  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

class TimedTarget {
 public:
  virtual ~TimedTarget() = default;
  virtual void call(size_t copy) = 0;  // requires copy < copies()
  virtual size_t copies() const = 0;
  // Returns microseconds per call: the mean of `calls` calls.
  // The calls use copy `first` and, if `rotate`, the copies after it.
  virtual double time_us(size_t first, size_t calls, bool rotate);
};

// Runs a kernel on `copies` copies of its outputs and of the data that an operation reads anew each time.
// This data is the planes, or the weight that prepare() made of them.
// For quantize and quantize_activation, the data is the floats that they read. linear has one x and one y.
//
// Outputs have copies too. The memory probe's output would otherwise stay in the cache.
// A kernel with streaming stores would bypass the cache.
// An example is dequantize of int4, 4096 x 4096, on a core with 32 MiB of L3.
// Its kernel reached 0.56 of the roof with streaming stores and 0.71 without, though it took 951 and 1210 us.
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
  size_t copies() const override { return remote_ ? remote_copies_ : problems_.size(); }
  // For linear, first flips the sign of one element in each row of x, untimed.
  // Caching an answer by x's address or value then gains nothing.
  double time_us(size_t first, size_t calls, bool rotate) override;
  void perturb_x();       // does the sign flips of time_us() alone, or nothing for operations without them
  KernelAnswer answer();  // returns the answer of the last call
  // Reads the changed input, which must have the same sizes, into the buffers of copy 0.
  // Then prepares the input again and poisons the outputs.
  // Must not be called for a kernel that is timed_by_provider().
  void reload_input();
  // Copies the current x of a linear, which time_us() has changed.
  void copy_x_to(std::vector<std::byte>& x) const;
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
  // Returns the time for one weight, from the fastest copy; 0 if there is no prepare().
  double prepare_us() const { return prepare_us_; }
  bool timed_by_provider() const { return remote_ != nullptr; }
  // Returns further measures that the provider took: {"benchmark_fn_us": 12.5}. Valid after answer().
  const nlohmann::ordered_json& provider_measures() const { return provider_measures_; }

 private:
  const Planes& planes_read() const { return packed_ ? *packed_ : input_.planes; }
  bool x_rotates() const { return op_ == Op::quantize || op_ == Op::quantize_activation; }
  struct Output {
    std::byte* y = nullptr;
    std::vector<qcts_plane> planes;
  };
  void add_outputs(size_t copies);
  void add_copies(size_t copies);
  void prepare_one(const qcts_problem& problem, std::byte* place);
  void prepare_all();

  const qcts_kernel& kernel_;
  const KernelInput& input_;
  std::optional<Planes> packed_;
  Op op_;
  ProblemBuilder builder_;
  std::vector<PlaneSpec> specs_, out_specs_;
  std::vector<BigBuffer> blocks_;
  std::vector<std::vector<qcts_plane>> planes_;
  std::vector<Output> outputs_;  // one per copy if they rotate
  size_t answered_ = 0;          // index of the output of the last call
  std::vector<qcts_problem> problems_;
  qcts_problem base_{};
  uint64_t weight_bytes_ = 0, io_bytes_ = 0, written_bytes_ = 0, prepared_bytes_ = 0;
  double prepare_us_ = 0;
  const RemoteProvider::Kernel* remote_ = nullptr;
  size_t remote_copies_ = 1;
  bool remote_timing_ = false;
  nlohmann::ordered_json provider_measures_ = nlohmann::ordered_json::object();
  std::byte *x_ = nullptr, *prepared_ = nullptr;  // buffers of copy 0
  int64_t perturbed_ = 0;
  std::byte* workspace_ = nullptr;
  size_t y_bytes_ = 0;
};

// Returns the number of copies of `bytes` that exceed the caches twofold, as far as `max_bytes` suffices if
// each copy takes `held_bytes` of memory, and at least 1.
// The number is odd, so that a series that alternates timed and untimed calls times all copies.
// With an even number, two series timed different halves, and one pack kernel differed from itself by 10 %.
// Assumes 64 MiB if l3_bytes is 0.
size_t cold_copies(uint64_t bytes, uint64_t held_bytes, uint64_t l3_bytes, uint64_t max_bytes);
// Returns a quarter of the available memory, at most 1 GiB.
uint64_t copy_budget_bytes();

}  // namespace qcts
