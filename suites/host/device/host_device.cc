// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/device/host_device.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace qcts {

void PlacedProblem::forget() {
  constexpr int kJunk = 0x5A;
  for (auto* list : {&planes, &out_planes})
    if (!list->empty())
      std::memset(static_cast<void*>(list->data()), kJunk, list->size() * sizeof(qcts_plane));
  std::memset(static_cast<void*>(&problem), kJunk, sizeof problem);
}

HostDevice::HostDevice(int ordinal, uintptr_t inputs, uintptr_t outputs, size_t lanes, bool has_guards)
    : device_(ordinal), memory_(device_, inputs, outputs, has_guards) {
  for (size_t i = 0; i < lanes; ++i) streams_.emplace_back(device_);
  captured_.resize(lanes);
}

PlacedProblem HostDevice::place(const qcts_problem& given, size_t lane) const {
  PlacedProblem placed;
  const auto planes = [&](const qcts_plane* list, uint32_t count) {
    std::vector<qcts_plane> copies(list, list + (list == nullptr ? 0 : count));
    for (qcts_plane& plane : copies) plane.data = place_of(plane.data);
    return copies;
  };
  placed.planes = planes(given.planes, given.n_planes);
  placed.out_planes = planes(given.out_planes, given.n_out_planes);
  qcts_problem& problem = placed.problem = given;
  if (given.planes != nullptr) problem.planes = placed.planes.data();
  if (given.out_planes != nullptr) problem.out_planes = placed.out_planes.data();
  problem.x = place_of(given.x);
  problem.bias = place_of(given.bias);
  problem.y = place_of(given.y);
  problem.prepared = place_of(given.prepared);
  problem.workspace = place_of(given.workspace);
  problem.device_status = static_cast<qcts_device_status*>(place_of(given.device_status));
  problem.device_info = &device_.described();
  problem.stream = streams_[lane].get();
  return placed;
}

void HostDevice::shut_gate(size_t lane) const {
  const CudaDriver& driver = device_.driver();
  const CuResult result = driver.cuStreamWaitValue32_v2(streams_[lane].get(), memory_.gate(lane), 1, 0);
  if (result != 0) throw DeviceFault("the gate of its stream: " + result_text(driver, result));
}

std::unique_ptr<CapturedWork> HostDevice::captured_of(size_t lane, const std::function<void()>& call) const {
  const CudaDriver& driver = device_.driver();
  const CuStream stream = streams_[lane].get();
  check_cuda(driver, driver.cuStreamBeginCapture_v2(stream, kCuCaptureGlobal), "cuStreamBeginCapture");
  CuGraph graph = nullptr;
  try {
    call();
  } catch (...) {
    if (driver.cuStreamEndCapture(stream, &graph) == 0 && graph != nullptr) driver.cuGraphDestroy(graph);
    throw;
  }
  const CuResult result = driver.cuStreamEndCapture(stream, &graph);
  if (result != 0 || graph == nullptr)
    throw std::runtime_error("run() did what cannot be captured: " + result_text(driver, result));
  return std::make_unique<CapturedWork>(device_, graph);
}

size_t HostDevice::capture(size_t lane, const std::function<void()>& call) {
  captured_[lane].reset();
  captured_[lane] = captured_of(lane, call);
  return captured_[lane]->kernels();
}

size_t HostDevice::capture_timed(size_t lane, uint32_t number, size_t calls, size_t calls_a_graph,
                                 const std::function<void(size_t)>& call) {
  timed_.erase(number);
  auto graphs = std::make_unique<TimedGraphs>(device_, streams_[lane].get());
  for (size_t first = 0; first < calls; first += calls_a_graph)
    graphs->add(captured_of(lane, [&] {
      for (size_t i = first; i < std::min(first + calls_a_graph, calls); ++i) call(i);
    }));
  return (timed_[number] = std::move(graphs))->kernels();
}

const TimedGraphs& HostDevice::timed_of(uint32_t number) const {
  const auto found = timed_.find(number);
  if (found == timed_.end()) throw std::runtime_error("the host was asked to time what it has not captured");
  return *found->second;
}

void HostDevice::wake_timed(uint32_t number) const {
  try {
    timed_of(number).wake();
  } catch (const CudaError& error) {
    throw DeviceFault(std::string("run() failed on the device: ") + error.what());
  }
}

double HostDevice::launch_timed(size_t lane, uint32_t number) const {
  try {
    timed_of(number).launch();
    wait(lane, "run");
    return timed_of(number).events_us();
  } catch (const CudaError& error) {
    throw DeviceFault(std::string("run() failed on the device: ") + error.what());
  }
}

void HostDevice::replay(size_t lane) const {
  if (!captured_[lane]) throw std::runtime_error("the host was asked to replay what it has not captured");
  const CuResult result = captured_[lane]->launch(streams_[lane].get());
  if (result != 0) throw DeviceFault("the replay of its graph: " + result_text(device_.driver(), result));
}

// A kernel that uses another stream is still at work when its own stream has ended.
void HostDevice::wait(size_t lane, const char* function) const {
  const CudaDriver& driver = device_.driver();
  CuResult result = driver.cuStreamSynchronize(streams_[lane].get());
  if (result == 0) result = driver.cuCtxSynchronize();
  if (result != 0)
    throw DeviceFault(std::string(function) + "() failed on the device: " + result_text(driver, result));
}

}  // namespace qcts
