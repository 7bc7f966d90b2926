// SPDX-License-Identifier: BSD-3-Clause
// A host's use of a GPU: one stream for each lane, and problems whose data lie in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "suites/host/device/device.h"
#include "suites/host/device/device_memory.h"

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
  // Opens the device and imports the memory behind the windows. Throws CudaError.
  HostDevice(int ordinal, uintptr_t inputs, uintptr_t outputs, size_t lanes);

  void make_current() const { device_.make_current(); }  // on the thread of a lane
  // `problem` must outlive the result, of which it keeps the strings.
  PlacedProblem place(const qcts_problem& problem, size_t lane) const;
  void* place_of(const void* of_window) const { return memory_.place_of(of_window); }
  // Work that is put on the lane's stream from now on runs once the judge has opened the gate.
  void shut_gate(size_t lane) const;
  // Captures what call() puts on the lane's stream, and keeps it for replay(). Returns the number of kernels.
  // Throws std::runtime_error if something in it cannot be captured.
  size_t capture(size_t lane, const std::function<void()>& call);
  // Starts what the lane captured last. Throws DeviceFault.
  void replay(size_t lane) const;
  // Waits until all that `function`() of a kernel started on the device has ended. Throws DeviceFault.
  void wait(size_t lane, const char* function) const;

 private:
  Device device_;
  ImportedMemory memory_;
  std::deque<DeviceStream> streams_;                     // by lane
  std::vector<std::unique_ptr<CapturedWork>> captured_;  // by lane
};

}  // namespace qcts
