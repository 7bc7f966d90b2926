// SPDX-License-Identifier: BSD-3-Clause
// A provider whose library is loaded by a host: a process that sees the inputs and outputs of a call and
// nothing of the judge. For the registry, it is a provider like any other.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kernels/registry.h"
#include "suites/host/guarded_call.h"
#include "suites/host/kernel_facts.h"
#include "suites/host/message.h"
#include "suites/providers/host_process.h"

namespace qcts {

class HostedProvider {
 public:
  // Starts a host, which loads the library. `memory_limit_bytes` limits the private memory that the host
  // takes after that; 0: no limit. With `device`, its problems are for that GPU.
  // Throws std::runtime_error with the host's reason.
  HostedProvider(const std::filesystem::path& library, const CageRequest& cage, uint64_t memory_limit_bytes,
                 std::optional<int> device = {}, const RepeatedChunk& repeated = {});
  HostedProvider(const HostedProvider&) = delete;
  HostedProvider& operator=(const HostedProvider&) = delete;
  // Starts another host for the same library, one that has served no call. It may see a chunk of its inputs
  // repeatedly, or other values of environment variables ("NAME=value"). Throws as the constructor.
  std::unique_ptr<HostedProvider> started_anew(const RepeatedChunk& repeated = {},
                                               const std::vector<std::string>& environment = {}) const;

  // Valid for the lifetime of this object. Its kernels must be called only through provider_call.
  const qcts_provider& table() const { return table_; }
  FileCalls file_calls();
  // How loading changed the host's floating-point control state (float_control_change), or "".
  const std::string& load_fault() const { return load_fault_; }
  // As isolation_of() says.
  const std::string& isolation() const { return isolation_; }
  pid_t pid() const { return process_.pid(); }
  HostMemory& memory() { return process_.memory(); }
  const Device* device() const { return process_.device(); }  // nullptr: it computes on the processor
  std::string no_guards() const { return process_.no_guards(); }
  const DeviceMemory* device_memory() const { return process_.device_memory(); }
  uint64_t round_trips() const { return process_.round_trips(); }

  struct Kernel : qcts_kernel {
    HostedProvider* owner = nullptr;
    uint32_t index = 0;
    std::string scheme_text, variant_text, description_text, layouts_text;
  };

  // Returns nullptr for kernels of this process and of programs.
  static const Kernel* kernel_of(const qcts_kernel& kernel);

  // The functions of provider_call.h. Data pointers of `problem` must be in memory(), or NULL.
  // They throw ProviderFault as provider_call.h says, and HostFailure if the host died or answered out of
  // turn.
  KernelFacts facts(const Kernel& kernel, const qcts_problem& problem);
  Support supports(const Kernel& kernel, const qcts_problem& problem);
  uint64_t workspace_bytes(const Kernel& kernel, const qcts_problem& problem);
  uint64_t prepared_bytes(const Kernel& kernel, const qcts_problem& problem);
  qcts_status prepare(const Kernel& kernel, const qcts_problem& problem, void* prepared);
  // On a device, `gated` runs get their inputs as HostProcess::ask_gated() says.
  qcts_status run(const Kernel& kernel, const qcts_problem& problem, bool gated = false);
  // As run(), for a caller that flushes subnormals to zero.
  qcts_status run_flushed(const Kernel& kernel, const qcts_problem& problem);
  // On a device: captures a run in a graph, and returns its status and the number of kernels in it. A replay
  // computes what was captured last.
  struct Capture {
    qcts_status status;
    uint64_t kernels;
  };
  Capture capture(const Kernel& kernel, const qcts_problem& problem);
  void replay(const Kernel& kernel, const qcts_problem& problem);
  // On a device: captures the problems, in graphs of `calls_a_graph`, in place of those that had the number.
  // time_batch() launches the graphs of a number, and calls `before` once the host is ready.
  Capture capture_batch(const Kernel& kernel, uint32_t number, std::span<const qcts_problem> problems,
                        size_t calls_a_graph);
  BatchTime time_batch(const Kernel& kernel, uint32_t number, const std::function<void()>& before);
  // Returns a number that nobody has, until it is given back.
  uint32_t take_graphs();
  void give_back_graphs(uint32_t number) { taken_graphs_.erase(number); }
  // Calls `before` once the host is ready. Returns the first status that is not QCTS_OK, which ends the
  // batch.
  qcts_status run_batch(const Kernel& kernel, std::span<const qcts_problem> problems,
                        const std::function<void()>& before, BatchTime& time, size_t n_awake = 0,
                        double slowed = 0);
  double cpu_seconds() const { return process_.cpu_seconds(); }
  std::string failure() const;  // of this thread's last run or prepare

 private:
  // The answer of failure() after a thread's last call.
  struct Failure {
    HostOutcome outcome = HostOutcome::answered;
    std::string text;
  };
  HostedProvider(const HostedProvider& other, const RepeatedChunk& repeated,
                 const std::vector<std::string>& environment);
  void read_table();
  void read_kernel(const nlohmann::ordered_json& entry);
  HostAnswer ask_kernel(HostCall call, const Kernel& kernel, const qcts_problem& problem,
                        void* prepared = nullptr, bool gated = false, bool flushes = false);
  Support load_save(const char* input, const char* output);
  Support run_program(const qcts_program_call& call);

  const std::filesystem::path library_;
  const CageRequest cage_;
  const uint64_t memory_limit_bytes_;
  const std::optional<int> device_;
  HostProcess process_;
  std::shared_ptr<const Handshake> handshake_;
  std::set<uint32_t> taken_graphs_;
  mutable std::mutex mutex_;  // of failures_
  std::unordered_map<std::thread::id, Failure> failures_;
  std::string name_, version_, url_, choices_, profile_, load_fault_, isolation_;
  std::deque<Kernel> kernels_;
  std::vector<const qcts_kernel*> kernel_pointers_;
  qcts_provider table_{};
  bool has_load_save_ = false, has_run_program_ = false;
};

}  // namespace qcts
