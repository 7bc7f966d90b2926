// SPDX-License-Identifier: BSD-3-Clause
// Streams of the fake driver, and the graphs that they capture.
#include <algorithm>

#include "kernels/fakecuda/state.h"

namespace qcts::fakecuda {
namespace {

thread_local void* current_context = nullptr;

// Does a stream wait at a gate? Then the work of the others does not wait, as on a GPU.
bool has_gate() {
  const std::lock_guard lock(state().mutex);
  return std::ranges::any_of(state().streams, [](const auto& stream) { return stream->gates > 0; });
}

}  // namespace

void set_current_context(void* context) { current_context = context; }

Stream* stream_of(void* handle) {
  const std::lock_guard lock(state().mutex);
  for (const auto& stream : state().streams)
    if (stream.get() == handle) return stream.get();
  return nullptr;
}

int enqueue(void* handle, Work work) {
  if (current_context == nullptr) return kInvalidContext;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  {
    const std::lock_guard lock(stream->mutex);
    if (stream->captured) {
      stream->captured->works.push_back(std::move(work));
      return kSuccess;
    }
    if (work.is_gate) ++stream->gates;
    stream->queue.push_back(std::move(work));
  }
  return stream->gates == 0 && has_gate() ? drain(*stream) : int{kSuccess};
}

int refuse_in_capture() {
  if (state().captures == 0) return kSuccess;
  const std::lock_guard lock(state().mutex);
  for (const auto& stream : state().streams)
    if (stream->captured) stream->captured->is_valid = false;
  return kCaptureUnsupported;
}

}  // namespace qcts::fakecuda

namespace {

using namespace qcts::fakecuda;

// The handle of a graph or of its instance.
std::shared_ptr<Graph>& graph_of(void* handle) { return *static_cast<std::shared_ptr<Graph>*>(handle); }

}  // namespace

QCTS_DRIVER cuStreamBeginCapture_v2(void* handle, int) {
  if (const int result = begin("cuStreamBeginCapture_v2"); result != kSuccess) return result;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  const std::lock_guard lock(stream->mutex);
  if (stream->captured) return kInvalidValue;
  stream->captured = std::make_shared<Graph>();
  ++state().captures;
  return kSuccess;
}

QCTS_DRIVER cuStreamIsCapturing(void* handle, int* status) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  const std::lock_guard lock(stream->mutex);
  *status = stream->captured ? 1 : 0;
  return begin("cuStreamIsCapturing");
}

QCTS_DRIVER cuStreamEndCapture(void* handle, void** graph) {
  if (const int result = begin("cuStreamEndCapture"); result != kSuccess) return result;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  const std::lock_guard lock(stream->mutex);
  if (!stream->captured) return kInvalidValue;
  const auto captured = std::exchange(stream->captured, nullptr);
  --state().captures;
  *graph = captured->is_valid ? new std::shared_ptr<Graph>(captured) : nullptr;
  return captured->is_valid ? kSuccess : kCaptureInvalidated;
}

QCTS_DRIVER cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
  if (const int result = begin("cuGraphGetNodes"); result != kSuccess) return result;
  std::deque<Work>& works = graph_of(graph)->works;
  for (size_t i = 0; nodes != nullptr && i < std::min(*count, works.size()); ++i) nodes[i] = &works[i];
  *count = works.size();
  return kSuccess;
}

QCTS_DRIVER cuGraphNodeGetType(void* node, int* type) {
  constexpr int kKernel = 0, kCopy = 1;
  *type = static_cast<const Work*>(node)->is_launch ? kKernel : kCopy;
  return begin("cuGraphNodeGetType");
}

QCTS_DRIVER cuGraphInstantiateWithFlags(void** instance, void* graph, uint64_t) {
  if (const int result = begin("cuGraphInstantiateWithFlags"); result != kSuccess) return result;
  *instance = new std::shared_ptr<Graph>(graph_of(graph));
  return kSuccess;
}

// The work of a replay keeps the graph alive.
QCTS_DRIVER cuGraphLaunch(void* instance, void* stream) {
  if (const int result = begin("cuGraphLaunch"); result != kSuccess) return result;
  const std::shared_ptr<Graph> graph = graph_of(instance);
  for (const Work& work : graph->works) {
    const auto run = [graph, run_once = work.run] { return run_once(); };
    const int result = enqueue(stream, {.run = run, .is_launch = work.is_launch});
    if (result != kSuccess) return result;
  }
  return kSuccess;
}

QCTS_DRIVER cuGraphExecDestroy(void* instance) {
  delete static_cast<std::shared_ptr<Graph>*>(instance);
  return kSuccess;
}

QCTS_DRIVER cuGraphDestroy(void* graph) {
  delete static_cast<std::shared_ptr<Graph>*>(graph);
  return kSuccess;
}
