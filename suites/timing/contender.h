// SPDX-License-Identifier: BSD-3-Clause
// What the stopwatch times: a kernel on rotating copies of what it reads and writes.
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

// Memory at a 2 MiB boundary, huge pages asked for, every page touched.
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

class Contender {
 public:
  virtual ~Contender() = default;
  virtual void call(size_t copy) = 0;  // copy < copies()
  virtual size_t copies() const = 0;
  // us a call: the mean of `calls` of them, on copy `first` and, where they rotate, those after it.
  virtual double time_us(size_t first, size_t calls, bool rotate);
};

// A kernel on `copies` copies of what an operation reads anew each time (planes and what prepare() made of
// them; the floats that quantize and quantize_activation read) and of what it writes, but one y and one x of
// linear. Were outputs written to one place, a kernel that streams past the caches would leave them to the
// probe, whose own lie there then: dequantize of int4, 4096 x 4096 on a core with 32 MiB of L3, came to 0.56
// of the roof streaming and to 0.71 not, and took 951 and 1210 us. A kernel of a
// provider that is a program of its own is timed by that program, in its own process: timed_by_provider().
class KernelContender final : public Contender {
 public:
  KernelContender(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads);
  Support supports() const;
  // What prepare() would make; 0 where run reads the planes. Only when supports() says yes.
  uint64_t ask_prepared_bytes();
  // Once, before the first call and only when supports() says yes. Throws ProviderFault when prepare() fails,
  // std::bad_alloc.
  void make_ready(size_t copies);

  void call(size_t copy) override;  // throws ProviderFault unless QCTS_OK
  size_t copies() const override { return remote_ ? remote_copies_ : problems_.size(); }
  // One element in each row of a linear's x changes its sign before, untimed: an answer that is kept for an
  // x, by place or by value, is of no use.
  double time_us(size_t first, size_t calls, bool rotate) override;
  KernelAnswer answer();  // of the last call
  // The input as it is now, of the same sizes, at the places of copy 0, which is prepared again; the outputs
  // are spoiled. Not for a kernel that is timed_by_provider().
  void read_input_again();
  // x of a linear as it is now: time_us() has changed it.
  void copy_x_to(std::vector<std::byte>& x) const;
  // Of one copy, what a call has to read: the planes, or what prepare() made of them where that is less.
  uint64_t weight_bytes() const;
  uint64_t moved_bytes() const { return weight_bytes() + io_bytes_; }
  uint64_t written_bytes() const { return written_bytes_; }
  // Of one copy, all that the next one has elsewhere.
  uint64_t copied_bytes() const;
  bool outputs_rotate() const { return op_ != Op::linear; }
  uint64_t prepared_bytes() const { return prepared_bytes_; }
  double prepare_us() const {
    return prepare_us_;
  }  // of one weight, the fastest copy; 0 where nothing is prepared
  bool timed_by_provider() const { return remote_ != nullptr; }
  // What the provider measured beside the times: {"benchmark_fn_us": 12.5}. After answer().
  const nlohmann::ordered_json& provider_measures() const { return provider_measures_; }

 private:
  bool x_rotates() const { return op_ == Op::quantize || op_ == Op::quantize_activation; }
  struct Output {
    std::byte* y = nullptr;
    std::vector<qcts_plane> planes;
  };
  void add_outputs(size_t copies);
  void add_copies(size_t copies);
  void prepare_one(const qcts_problem& problem, std::byte* place);
  void prepare_all();
  void stir_x();

  const qcts_kernel& kernel_;
  const KernelInput& input_;
  Op op_;
  ProblemBuilder builder_;
  std::vector<PlaneSpec> specs_, out_specs_;
  std::vector<BigBuffer> blocks_;
  std::vector<std::vector<qcts_plane>> planes_;
  std::vector<Output> outputs_;  // one a copy where they rotate
  size_t answered_ = 0;          // the last call's
  std::vector<qcts_problem> problems_;
  qcts_problem base_{};
  uint64_t weight_bytes_ = 0, io_bytes_ = 0, written_bytes_ = 0, prepared_bytes_ = 0;
  double prepare_us_ = 0;
  const RemoteProvider::Kernel* remote_ = nullptr;
  size_t remote_copies_ = 1;
  bool remote_timing_ = false;
  nlohmann::ordered_json provider_measures_ = nlohmann::ordered_json::object();
  std::byte *x_ = nullptr, *prepared_ = nullptr;  // of copy 0
  int64_t stirred_ = 0;
  std::byte* workspace_ = nullptr;
  size_t y_bytes_ = 0;
};

// As many copies of `bytes` as it takes to leave the caches twice over, within `most_bytes`; at least 1. An
// odd number: a lane that takes two at a time, one of them untimed, comes to time them all (with an even one
// two lanes timed two halves, and the same pack kernel differed from itself by a tenth). l3_bytes 0: 64 MiB
// assumed.
size_t cold_copies(uint64_t bytes, uint64_t l3_bytes, uint64_t most_bytes);
// A quarter of the memory that is available now, at most 1 GiB.
uint64_t copy_budget_bytes();

}  // namespace qcts
