// SPDX-License-Identifier: BSD-3-Clause
// The state of the fake driver in one process: errors, streams, and memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Begins the definition of a function that the library exports.
#define QCTS_DRIVER extern "C" __attribute__((visibility("default"))) int

namespace qcts::fakecuda {

// Results of the CUDA driver API (cuda.h, CUresult).
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901
};

// Errors on demand: QCTS_FAKECUDA_FAULTS (fake_driver.h).
class Faults {
 public:
  Faults();
  // Returns the error that this call of `function` has to return, or kSuccess. A hang does not return.
  int next(const std::string& function);

 private:
  struct Fault {
    std::string function;
    int call, result;  // result -1: hang
  };
  std::vector<Fault> faults_;
  std::map<std::string, int> calls_;
  std::mutex mutex_;
};

// Times on demand: QCTS_FAKECUDA_LAUNCH_US and QCTS_FAKECUDA_EVENT_US (fake_driver.h).
class Script {
 public:
  explicit Script(const char* variable) : variable_(variable) {}
  // Returns the next time in microseconds, and begins again after the last. Returns nullopt without a script.
  std::optional<double> next();

 private:
  const char* const variable_;
  size_t at_ = 0;
  std::mutex mutex_;
};

// Work on a stream. run() returns NULL or why it failed.
struct Work {
  std::function<const char*()> run;
  std::function<void()> drop = [] {};
  bool is_launch = false, is_gate = false;
};

// The work that a stream captured. A replay runs it again.
struct Graph {
  std::deque<Work> works;
  bool is_valid = true;  // false once something could not be captured
  ~Graph() {
    for (Work& work : works) work.drop();
  }
};

struct Stream {
  std::shared_ptr<Graph> captured;  // while it captures
  std::deque<Work> queue;
  std::atomic<int> gates = 0;   // in the queue, or waited for
  std::mutex mutex;             // of the queue
  std::recursive_mutex worked;  // held while work is done
};

struct Allocation {
  int fd = -1;
  size_t bytes = 0;
};

struct State {
  Faults faults;
  Script launch_us{"QCTS_FAKECUDA_LAUNCH_US"}, event_us{"QCTS_FAKECUDA_EVENT_US"};
  std::mutex mutex;  // of all below
  int sticky = kSuccess;
  std::string sticky_text;
  std::vector<std::unique_ptr<Stream>> streams;
  std::atomic<int> captures = 0;               // streams that capture
  std::map<uint64_t, Allocation> allocations;  // by handle
  uint64_t last_handle = 0;
  std::map<uint64_t, size_t> reserved;  // bytes by device address
  struct Mapped {
    uint64_t memory;
    size_t offset, bytes;
  };
  std::map<uint64_t, Mapped> mapped;  // by device address
};

// The state of this process.
State& state();

// Begins a function of the driver: returns its planted error, or the one that sticks.
int begin(const char* function);
// Remembers an error that all later calls return.
void stick(int result, const char* text);
// Makes a context current on this thread.
void set_current_context(void* context);
// Returns the stream of a handle, or nullptr.
Stream* stream_of(void* handle);
// Returns true if all of these device addresses are mapped.
bool is_mapped(uint64_t address, size_t bytes);
// Appends work to a stream, or to the graph that it captures.
int enqueue(void* handle, Work work);
// While a stream captures, nobody may wait: the capture is then invalid. Returns kSuccess if none does.
int refuse_in_capture();
// Does the work that waits in the stream. Returns the error that sticks.
int drain(Stream& stream);

}  // namespace qcts::fakecuda
