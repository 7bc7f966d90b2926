// SPDX-License-Identifier: BSD-3-Clause
// Calls of a kernel that a stream has captured in graphs, which are timed by events around each graph.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "suites/host/device/device.h"

namespace qcts {

// An event of a stream.
class DeviceEvent {
 public:
  explicit DeviceEvent(const Device& device);  // throws CudaError
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  void record(CuStream stream) const;  // throws CudaError
  // Returns the microseconds since an earlier event. Both have happened. Throws CudaError.
  double us_since(const DeviceEvent& earlier) const;

 private:
  const Device& device_;
  CuEvent event_ = nullptr;
};

class TimedGraphs {
 public:
  // The device must outlive the graphs.
  TimedGraphs(const Device& device, CuStream stream) : device_(device), stream_(stream) {}

  // Takes one more graph, in the order in which they are launched. Throws CudaError.
  void add(std::unique_ptr<CapturedWork> graph);
  size_t size() const { return graphs_.size(); }
  size_t kernels() const;  // in all graphs
  // Launches the first graph, untimed, and waits for it. Throws CudaError.
  void wake() const;
  // Launches all graphs one after another, without waiting in between. Throws CudaError.
  void launch() const;
  // Returns the time in microseconds between the events around each graph, summed over all of them. The
  // stream must have come to its end. Throws CudaError.
  double events_us() const;

 private:
  struct Timed {
    std::unique_ptr<CapturedWork> graph;
    std::unique_ptr<DeviceEvent> begin, end;
  };
  void launch(const CapturedWork& graph) const;
  const Device& device_;
  const CuStream stream_;
  std::vector<Timed> graphs_;
};

}  // namespace qcts
