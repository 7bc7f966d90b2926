// SPDX-License-Identifier: BSD-3-Clause
// The limits of a GPU for one timed problem. The kernels that measure them are those of the clock library
// (kernels/cudaclock/README.md), timed in graphs like the kernel that is judged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "suites/timing/clock_check.h"
#include "suites/timing/roof.h"
#include "suites/timing/timed_kernel.h"

namespace qcts {

// A kernel of the clock library with its input.
class ClockKernel {
 public:
  // Reads `read_bytes` of memory, writes `write_bytes`, or multiplies `operations` times, as its scheme says.
  ClockKernel(const qcts_kernel& kernel, uint64_t read_bytes, uint64_t write_bytes, double operations);
  ClockKernel(const ClockKernel&) = delete;
  ClockKernel& operator=(const ClockKernel&) = delete;
  Support supports() const { return timed_.supports(); }
  void make_ready(size_t copies);
  TimedKernel& timed() { return timed_; }
  const std::string& name() const { return name_; }  // "roof_bf16_sm90a"
  double operations() const { return operations_; }

 private:
  const std::string name_;
  const double operations_;  // of one call
  KernelInput input_;
  TimedKernel timed_;
};

class DeviceRoof final : public Roofs {
 public:
  // `x_dtype` of the request is what the kernel multiplies: int8 or float8_e4m3fn where x is quantized. The
  // kernels of `clock` must outlive the roof. Throws std::runtime_error if the library lacks one, or
  // ProviderFault if one fails.
  DeviceRoof(const Registry& clock, const RoofRequest& request, uint64_t l2_bytes);
  void add_series(std::vector<Series>& series, bool cold) override;
  std::string peak_name() const override { return peak_ ? peak_->name().substr(5) : ""; }
  double peak_rate(double us) const override { return operations_ / us * 1e6; }
  // Returns the time of a fixed amount of arithmetic, the shortest of some.
  double canary_us();
  // Returns what a batch of graphs costs in addition to their work. Also sets launch_us().
  EmptyBatch measure_empty();
  double launch_us() const { return launch_us_; }  // of an empty kernel in a graph, by its events

 private:
  std::unique_ptr<ClockKernel> fastest(const Registry& clock, std::string_view scheme,
                                       const RoofRequest& request, double operations, size_t copies) const;
  const double operations_;
  double peak_scale_ = 1, launch_us_ = 0;
  std::unique_ptr<ClockKernel> stream_, peak_, empty_, canary_;
};

// Returns the number of copies that exceed three times the cache of the device's L2, as far as its memory
// suffices.
size_t cold_copies_on_device(const TimedKernel& timed);

}  // namespace qcts
