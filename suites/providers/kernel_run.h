// SPDX-License-Identifier: BSD-3-Clause
// One call of one kernel on caller-owned, guarded buffers. numerics and determinism judge what comes back;
// latency has buffers of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "suites/providers/arena.h"
#include "suites/providers/problem.h"
#include "suites/providers/provider_call.h"

namespace qcts {

// What an op writes: y, or planes.
struct KernelAnswer {
  std::vector<std::byte> y;
  Planes planes;
};

struct RunOptions {
  uint32_t threads = 1;
  // Every buffer but workspace and prepared begins this many elements past a 64-byte boundary.
  size_t misalign_elems = 0;
  size_t gap_elems = 0;          // between the rows of x and of y
  bool planes_reversed = false;  // last first: they are to be found by name
};

// The planes that quantize, quantize_activation, pack and unpack write.
std::vector<PlaneSpec> output_specs(const KernelInput& input);

class KernelRun {
 public:
  // Copies the inputs into guarded buffers. `kernel` outlives the run.
  KernelRun(const qcts_kernel& kernel, const KernelInput& input, const RunOptions& options);
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  Support supports() const;
  // The same while no buffer exists yet: every pointer to data is NULL.
  Support supports_before_data() const;
  // Poisons the outputs and the workspace, prepares once, calls, checks the red zones, the inputs and what
  // `prepare` wrote; what run said. Throws ProviderFault for a broken contract. Call only when supports()
  // says yes.
  qcts_status attempt(Poison poison, const KernelAnswer* previous = nullptr);
  // The same where nothing but QCTS_OK will do: throws ProviderFault for any other status.
  KernelAnswer run(Poison poison, const KernelAnswer* previous = nullptr);

  // Other rows of x in place of those that it was made with, as many bytes.
  void set_x(std::span<const std::byte> x);

  const qcts_problem& problem() const { return problem_; }
  uint64_t prepared_bytes() const { return problem_.prepared_bytes; }
  // `other`, of the same weight, does not prepare but reads what this one has prepared; this one's planes are
  // overwritten, so that only what was prepared is left of them. Afterwards only `other` may run, while this
  // one lives.
  void hand_over_prepared(KernelRun& other);

 private:
  void add_inputs(const KernelInput& input, const RunOptions& options);
  void add_outputs(const KernelInput& input, const RunOptions& options);
  GuardedBuffer* guard(std::string name, size_t rows, size_t row_bytes, size_t stride_bytes,
                       size_t misalign_bytes);
  void prepare_once();
  void check_untouched() const;

  struct Readable {
    GuardedBuffer* buffer;
    std::vector<std::byte> bytes;
  };
  const qcts_kernel& kernel_;
  Op op_;
  ProblemBuilder builder_;
  std::deque<GuardedBuffer> buffers_;
  std::vector<Readable> inputs_;
  std::vector<PlaneSpec> in_specs_, out_specs_;
  std::vector<qcts_plane> in_planes_, out_planes_;
  std::vector<GuardedBuffer*> out_plane_buffers_;
  GuardedBuffer* y_ = nullptr;
  GuardedBuffer* workspace_ = nullptr;
  bool prepared_ = false;
  qcts_problem problem_{};
};

}  // namespace qcts
