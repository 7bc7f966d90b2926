// SPDX-License-Identifier: BSD-3-Clause
// A host's use of a GPU: one stream per lane, and problems whose data are in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "suites/host/device/device.h"
#include "suites/host/device/device_memory.h"
#include "suites/host/device/timed_graphs.h"

namespace qcts {

// Reports that work on the device failed. The device's context is lost, so this host computes no more.
class DeviceFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A problem of the windows as a kernel on the device gets it.
struct PlacedProblem {
  std::vector<qcts_plane> planes, out_planes;
  qcts_problem problem{};

  // Overwrites all of it: a kernel must not read it once its call has returned.
  void forget();
};

class HostDevice {
 public:
  // Opens the device and imports the memory of the windows. Throws CudaError.
  HostDevice(int ordinal, uintptr_t inputs, uintptr_t outputs, size_t lanes, bool has_guards);
  const ImportedMemory& memory() const { return memory_; }

  void make_current() const { device_.make_current(); }  // on the thread of a lane
  // `problem` must outlive the result, of which it keeps the strings.
  PlacedProblem place(const qcts_problem& problem, size_t lane) const;
  void* place_of(const void* of_window) const { return memory_.place_of(of_window); }
  // Work that is put on the lane's stream from now on runs once the judge has opened the gate.
  void shut_gate(size_t lane) const;
  // Captures what call() puts on the lane's stream, and keeps it for replay(). Returns the number of kernels.
  // Throws std::runtime_error if something in it cannot be captured.
  size_t capture(size_t lane, const std::function<void()>& call);
  // Captures call(0) to call(calls - 1) in graphs of `calls_a_graph`, and keeps them as `number`, in place of
  // what it was before. Returns how many kernels they have. Throws as capture() does.
  size_t capture_timed(size_t lane, uint32_t number, size_t calls, size_t calls_a_graph,
                       const std::function<void(size_t)>& call);
  // Launches the first of these graphs and waits for it, so that code and clocks are awake. Throws
  // DeviceFault.
  void wake_timed(uint32_t number) const;
  // Launches these graphs, waits for all work on the device, and returns the time that the events around the
  // graphs report, in microseconds. Throws DeviceFault.
  double launch_timed(size_t lane, uint32_t number) const;
  // Starts what the lane captured last. Throws DeviceFault.
  void replay(size_t lane) const;
  // Waits until all that `function`() of a kernel started on the device has ended. Throws DeviceFault.
  void wait(size_t lane, const char* function) const;

 private:
  std::unique_ptr<CapturedWork> captured_of(size_t lane, const std::function<void()>& call) const;
  const TimedGraphs& timed_of(uint32_t number) const;

  Device device_;
  ImportedMemory memory_;
  std::deque<DeviceStream> streams_;                        // by lane
  std::vector<std::unique_ptr<CapturedWork>> captured_;     // by lane
  std::map<uint32_t, std::unique_ptr<TimedGraphs>> timed_;  // by number
};

}  // namespace qcts
