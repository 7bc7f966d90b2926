// SPDX-License-Identifier: BSD-3-Clause
// Events of the fake driver: each remembers when its stream came to it.
#include <chrono>
#include <optional>

#include "kernels/fakecuda/state.h"

namespace {

using namespace qcts::fakecuda;

struct Event {
  std::optional<std::chrono::steady_clock::time_point> happened;
};

Event& event_of(void* handle) { return *static_cast<Event*>(handle); }

}  // namespace

QCTS_DRIVER cuEventCreate(void** event, unsigned) {
  if (const int result = begin("cuEventCreate"); result != kSuccess) return result;
  *event = new Event;
  return kSuccess;
}

QCTS_DRIVER cuEventDestroy_v2(void* event) {
  delete &event_of(event);
  return kSuccess;
}

QCTS_DRIVER cuEventRecord(void* event, void* stream) {
  if (const int result = begin("cuEventRecord"); result != kSuccess) return result;
  event_of(event).happened.reset();
  return enqueue(stream, {[event]() -> const char* {
                   event_of(event).happened = std::chrono::steady_clock::now();
                   return nullptr;
                 }});
}

QCTS_DRIVER cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  if (const int result = begin("cuEventElapsedTime"); result != kSuccess) return result;
  const Event &from = event_of(start), &to = event_of(end);
  if (!from.happened || !to.happened) return kNotReady;
  const std::chrono::duration<float, std::milli> past = *to.happened - *from.happened;
  const std::optional<double> scripted_us = state().event_us.next();
  *milliseconds = scripted_us ? static_cast<float>(*scripted_us * 1e-3) : past.count();
  return kSuccess;
}
