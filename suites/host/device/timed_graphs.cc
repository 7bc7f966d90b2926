// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/device/timed_graphs.h"

#include <utility>

namespace qcts {

DeviceEvent::DeviceEvent(const Device& device) : device_(device) {
  check_cuda(device.driver(), device.driver().cuEventCreate(&event_, 0), "cuEventCreate");
}

DeviceEvent::~DeviceEvent() { device_.driver().cuEventDestroy_v2(event_); }

void DeviceEvent::record(CuStream stream) const {
  check_cuda(device_.driver(), device_.driver().cuEventRecord(event_, stream), "cuEventRecord");
}

double DeviceEvent::us_since(const DeviceEvent& earlier) const {
  float milliseconds = 0;
  check_cuda(device_.driver(), device_.driver().cuEventElapsedTime(&milliseconds, earlier.event_, event_),
             "cuEventElapsedTime");
  return 1e3 * static_cast<double>(milliseconds);
}

void TimedGraphs::add(std::unique_ptr<CapturedWork> graph) {
  graphs_.push_back(
      {std::move(graph), std::make_unique<DeviceEvent>(device_), std::make_unique<DeviceEvent>(device_)});
}

size_t TimedGraphs::kernels() const {
  size_t kernels = 0;
  for (const Timed& each : graphs_) kernels += each.graph->kernels();
  return kernels;
}

void TimedGraphs::launch(const CapturedWork& graph) const {
  check_cuda(device_.driver(), graph.launch(stream_), "cuGraphLaunch");
}

void TimedGraphs::wake() const {
  if (graphs_.empty()) return;
  launch(*graphs_.front().graph);
  check_cuda(device_.driver(), device_.driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

void TimedGraphs::launch() const {
  for (const Timed& each : graphs_) {
    each.begin->record(stream_);
    launch(*each.graph);
    each.end->record(stream_);
  }
}

double TimedGraphs::events_us() const {
  double us = 0;
  for (const Timed& each : graphs_) us += each.end->us_since(*each.begin);
  return us;
}

}  // namespace qcts
