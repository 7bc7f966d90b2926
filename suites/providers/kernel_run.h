// SPDX-License-Identifier: BSD-3-Clause
// Calls a kernel once on caller-owned, guarded buffers.
// The kinds numerics and determinism use this; latency has its own buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "suites/providers/memory/arena.h"
#include "suites/providers/problem.h"
#include "suites/providers/provider_call.h"

namespace qcts {

// The outputs of an op: y or planes.
struct KernelAnswer {
  std::vector<std::byte> y;
  Planes planes;
};

enum class Misaligned : uint8_t { all, inputs, outputs };

struct RunOptions {
  uint32_t threads = 1;
  // Offset of the buffers from a 64-byte boundary, except for workspace and prepared.
  size_t misalign_elems = 0;
  size_t gap_elems = 0;          // gap between the rows of x and of y
  bool planes_reversed = false;  // true: the last plane comes first, so kernels must find planes by name
  Misaligned misaligned = Misaligned::all;  // the buffers with that offset; the others have none
  // Without rows of x: true if x, y and the planes of rows have the address of painted bytes, false if they
  // are NULL.
  bool empty_has_address = false;
  Flush flush = Flush::none;  // of all buffers; their places then follow from their sizes
  // With a prepared weight: the weight's planes are overwritten before the call, as if they were gone.
  bool planes_gone = false;
  bool prepares_alone = false;  // true: prepare() has 1 thread
  bool renamed = false;  // true: run() of a library finds another scheme_name, which is only for messages

  size_t misalign_inputs() const { return misaligned == Misaligned::outputs ? 0 : misalign_elems; }
  size_t misalign_outputs() const { return misaligned == Misaligned::inputs ? 0 : misalign_elems; }
};

// Returns the planes that quantize, quantize_activation, pack and unpack write.
std::vector<PlaneSpec> output_specs(const KernelInput& input);

class KernelRun {
 public:
  // Copies the inputs into guarded buffers and asks the kernel about them. `kernel` must outlive the run.
  KernelRun(const qcts_kernel& kernel, const KernelInput& input, const RunOptions& options);
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  // The kernel's answer when the run was made.
  const Support& supports() const { return facts_.support; }
  // The same with every data pointer NULL; asked only if supports() accepts the problem.
  const Support& supports_before_data() const { return facts_.before_data; }
  // Asks supports() again with inputs of zeros in place of the data. Call this only if it refused.
  bool accepts_other_values();
  // Prepares the weight now, if the kernel does that, and not in the first call.
  void prepare() { prepare_once(); }
  // Prepares the weight that the planes hold by now, into the same buffer. Does nothing without prepare().
  void prepare_again();
  // From now on, calls find the workspace as the last one left it.
  void keep_workspace() { keeps_workspace_ = true; }
  // Poisons the outputs and the workspace, prepares once, and calls the kernel.
  // Then checks the red zones, the inputs and the prepared weight, and returns run's status.
  // Throws ProviderFault for a broken contract. Call this only if supports() accepts the problem.
  qcts_status attempt(Poison poison, const KernelAnswer* previous = nullptr);
  // Calls attempt(). Throws ProviderFault for any status other than QCTS_OK.
  KernelAnswer run(Poison poison, const KernelAnswer* previous = nullptr);

  // For calls in a batch: poisons the outputs and prepares once, and returns the problem; after the call,
  // checks as attempt() does and returns the answer.
  const qcts_problem& poisoned(Poison poison);
  KernelAnswer answer() const;

  // Calls the kernel as a caller that flushes subnormals to zero. That may change its answer, but the kernel
  // leaves the control state as it found it. Throws as run(). On the host.
  void run_flushed();

  // On a device: captures a run in a graph, once the kernel has run. Throws ProviderFault if that is
  // impossible.
  void capture();
  // As run(), but computes with what was captured last.
  KernelAnswer replay(Poison poison);

  // Throws ProviderFault if the outputs no longer hold the answer that run() returned: a call that has
  // returned may write no more.
  void check_unchanged(const KernelAnswer& answer) const;
  // The same. If the kernel's host has children, they get a moment to write.
  void check_unchanged_by_children(const KernelAnswer& answer) const;

  // For a problem without rows of x: true if a byte written to x, y or a plane of rows would be a violation.
  bool notices_writes_without_rows();

  // Replaces x, or the plane with that name, by data of the same size at the same address.
  void set_x(std::span<const std::byte> x) { set_input("x", x); }
  void set_input(std::string_view name, std::span<const std::byte> bytes);

  const qcts_problem& problem() const { return problem_; }
  uint64_t prepared_bytes() const { return problem_.prepared_bytes; }
  // Lets `other`, which has the same weight, use this run's prepared weight instead of preparing again.
  // Overwrites the planes of this run, so that only the prepared form remains.
  // Afterwards only `other` may run, while this one must stay alive.
  void hand_over_prepared(KernelRun& other);

 private:
  void add_inputs(const KernelInput& input, const RunOptions& options);
  void add_outputs(const KernelInput& input, const RunOptions& options);
  static void* address(GuardedBuffer& buffer, const RunOptions& options);
  GuardedBuffer* guard(std::string name, size_t rows, size_t row_bytes, size_t stride_bytes,
                       size_t misalign_bytes, HostAccess access);
  size_t as_promised(uint64_t bytes) const;
  void prepare_once();
  void fill_prepared();
  void move_prepared();
  void overwrite_planes(size_t count);  // the first ones of the inputs
  void poison_outputs(Poison poison, const KernelAnswer* previous);
  KernelAnswer answer_now() const;
  void check_untouched() const;
  void clear_device_status();
  // Returns QCTS_FAILED if the call returned QCTS_OK and the device says otherwise.
  qcts_status with_device_status(qcts_status status);
  std::string failure() const;  // of the last call

  struct Readable {
    GuardedBuffer* buffer;
    std::vector<std::byte> bytes;
  };
  const qcts_kernel& kernel_;
  Op op_;
  bool has_no_rows_;
  const Device* const device_;  // nullptr: the kernel computes on the processor
  const Flush flush_;
  const bool planes_gone_, prepares_alone_, renamed_;
  size_t weight_planes_ = 0;  // of in_specs_; those of the policy follow
  ProblemBuilder builder_;
  std::deque<GuardedBuffer> buffers_;
  std::vector<Readable> inputs_;
  std::vector<PlaneSpec> in_specs_, out_specs_;
  std::vector<qcts_plane> in_planes_, out_planes_;
  std::vector<GuardedBuffer*> out_plane_buffers_;
  GuardedBuffer* y_ = nullptr;
  GuardedBuffer* workspace_ = nullptr;
  GuardedBuffer* status_ = nullptr;  // on a device
  std::string device_failure_;
  GuardedBuffer* prepared_buffer_ = nullptr;
  bool prepared_ = false, keeps_workspace_ = false, has_run_ = false;
  qcts_problem problem_{};
  KernelFacts facts_;
};

}  // namespace qcts
