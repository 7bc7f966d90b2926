// SPDX-License-Identifier: BSD-3-Clause
// A host as a process: starting it, asking it, and noticing how it ended.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "suites/base/process.h"
#include "suites/host/cage.h"
#include "suites/host/device/device_memory.h"
#include "suites/host/guarded_call.h"
#include "suites/host/message.h"
#include "suites/host/windows.h"
#include "suites/providers/memory/host_memory.h"
#include "suites/providers/request_writer.h"

namespace qcts {

// Times of a batch of calls: by this process's clock, and of all threads that worked on them. On a device,
// also what the host says about the events around its graphs.
struct BatchTime {
  double wall_us = 0, cpu_us = 0, events_us = 0;
};

struct Handshake;  // suites/providers/handshake.h

class HostProcess {
 public:
  // Starts qcts_host, which is next to this program. It computes on the GPU `device`, or on the processor.
  // `environment` ("NAME=value") is added to this process's. Throws std::runtime_error.
  HostProcess(const std::filesystem::path& library, const CageRequest& cage, uint64_t memory_limit_bytes,
              std::optional<int> device = {}, const RepeatedChunk& repeated = {},
              const std::vector<std::string>& environment = {});
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // Returns the host's first line, or `known` if the line is the same, because a table of a thousand kernels
  // takes long to read. Throws HostFailure.
  std::shared_ptr<const Handshake> read_handshake(std::shared_ptr<const Handshake> known = nullptr);

  using WriteRequest = std::function<void(HostRequest&, RequestWriter&)>;
  // Sends what `write` puts into the request, and returns a copy of the answer. On a device, a run gets the
  // contents of the windows, and the windows get its outputs; blocks of timed calls stay as they are, because
  // the judge writes and reads them on the device. [thread-safe]
  // Throws HostFailure if the host died or answered out of turn.
  // Throws OverrunFault if it died because it wrote to an input, or used a buffer after the call, and if its
  // work on the device failed.
  HostAnswer ask(const WriteRequest& write);
  // As ask(), for a run on a device. The inputs come only after run() has returned, and its stream waits for
  // them. Throws ProviderFault if run() waits for the device, or if outputs change before.
  HostAnswer ask_gated(const WriteRequest& write);
  // As ask(), for run_batch and time_batch. Calls `before` once the host is ready, and then lets it begin.
  HostAnswer ask_batch(const WriteRequest& write, const std::function<void()>& before, BatchTime& time);

  // Returns the seconds of CPU time that the host and its children have used.
  double cpu_seconds() const;
  pid_t pid() const { return pid_; }  // of the host itself, once the handshake is read
  HostMemory& memory() { return memory_; }
  const Device* device() const { return device_ ? &device_->device : nullptr; }
  // Returns "" or why buffers on the device have no guards.
  std::string no_guards() const { return device_ ? device_->memory.no_guards() : ""; }
  const DeviceMemory* device_memory() const { return device_ ? &device_->memory : nullptr; }
  uint64_t round_trips() const { return round_trips_; }

 private:
  // One conversation with the host. The first lane uses the child's own pipes.
  struct Lane {
    bool is_busy = false;
    uint64_t number = 0;  // of the last request
    int request_fd = -1, answer_fd = -1;
    std::string received = {};
  };

  class TakenLane;

  std::string device_word() const;
  size_t take_lane();
  void give_back_lane(size_t lane);
  // Returns the number of the request.
  std::string send(size_t lane, const WriteRequest& write);
  HostAnswer receive(size_t lane, const std::string& number);
  // Returns false if the host answers or ends instead, or after the limit.
  bool await_ready(size_t lane, std::optional<std::chrono::milliseconds> limit = {}) const;
  // Returns true if the host has answered or ended.
  bool has_answered(size_t lane) const;
  std::string next_line(size_t lane);
  [[noreturn]] void fail_dead();
  const std::byte* of_window(uint64_t fault_address) const;

  // Copies what the call uses between windows and device memory.
  void copy_to_device(const std::vector<OpenPages>& used) const;
  void copy_junk_to_device(const std::vector<OpenPages>& used) const;
  void copy_from_device(const std::vector<OpenPages>& used) const;
  // Returns true if the device's outputs differ from those in the window.
  bool outputs_changed(const std::vector<OpenPages>& used) const;

  struct OnDevice {
    Device device;
    DeviceMemory memory;
    OnDevice(int ordinal, const Windows& windows)
        : device(ordinal), memory(device, windows.inputs(), windows.outputs()) {}
  };

  Windows windows_;
  std::unique_ptr<OnDevice> device_;  // nullptr: the host computes on the processor
  HostMemory memory_;
  std::array<CuAddress, 2> device_first_{};  // of inputs and outputs in the host
  std::unique_ptr<ChildProcess> child_;
  pid_t pid_ = -1;
  std::mutex mutex_;  // of lanes_, and of waiting for the child
  std::condition_variable lane_is_free_;
  std::array<Lane, kLanes> lanes_;
  std::atomic<uint64_t> round_trips_{0};
};

}  // namespace qcts
