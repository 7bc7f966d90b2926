// SPDX-License-Identifier: BSD-3-Clause
// The only way to call a provider's functions: in this process, in a host or in a program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "kernels/registry.h"
#include "suites/host/guarded_call.h"
#include "suites/host/kernel_facts.h"
#include "suites/providers/host_process.h"

namespace qcts {

// These functions throw the faults of guarded_call.h, and HostFailure if the kernel's host died.
KernelFacts provider_facts(const qcts_kernel& kernel, const qcts_problem& problem);
Support provider_supports(const qcts_kernel& kernel, const qcts_problem& problem);
uint64_t provider_workspace_bytes(const qcts_kernel& kernel,
                                  const qcts_problem& problem);  // returns 0 if the kernel has no workspace
uint64_t provider_prepared_bytes(const qcts_kernel& kernel,
                                 const qcts_problem& problem);  // returns 0 if run reads the planes
qcts_status provider_prepare(const qcts_kernel& kernel, const qcts_problem& problem, void* prepared);
// A `gated` run on a device gets its inputs only after it has returned (HostProcess::ask_gated).
qcts_status provider_run(const qcts_kernel& kernel, const qcts_problem& problem, bool gated = false);
// The same for a caller that flushes subnormals to zero; a program is its own caller. On the host.
qcts_status provider_run_flushed(const qcts_kernel& kernel, const qcts_problem& problem);
// For a problem on a device: captures a run in a graph, and computes what was captured last. `capture` throws
// ProviderFault if run() cannot be captured, or launches no kernel.
void provider_capture(const qcts_kernel& kernel, const qcts_problem& problem);
void provider_replay(const qcts_kernel& kernel, const qcts_problem& problem);
// Graphs of a kernel's calls on a device, which its host keeps.
class DeviceGraphs {
 public:
  explicit DeviceGraphs(const qcts_kernel& kernel);  // of a host with a device
  ~DeviceGraphs();
  DeviceGraphs(const DeviceGraphs&) = delete;
  DeviceGraphs& operator=(const DeviceGraphs&) = delete;
  // Captures the problems in graphs of `calls_a_graph`, instead of the previous ones. Returns the number of
  // kernels in all graphs. Throws as provider_capture().
  uint64_t capture(std::span<const qcts_problem> problems, size_t calls_a_graph) const;
  // Launches the graphs one after another. Calls `before` just before the first. Throws ProviderFault.
  BatchTime time(const std::function<void()>& before) const;

 private:
  const qcts_kernel& kernel_;
  const uint32_t number_;
};
// Runs the problems one after another: in a host, as one message. Calls `before` just before the first.
// A program runs one problem at a time. Throws ProviderFault unless every call returns QCTS_OK.
// In a host, the first `n_awake` run before that and are not timed, and each call may be slowed
// (HostRequest::slowed).
BatchTime provider_run_batch(const qcts_kernel& kernel, std::span<const qcts_problem> problems,
                             const std::function<void()>& before, size_t n_awake = 0, double slowed = 0);
// Returns the memory in which the data of the kernel's problems must be, or nullptr if any will do.
HostMemory* provider_memory(const qcts_kernel& kernel);
// Returns the GPU on which the kernel computes, and its memory; nullptr if it computes on the processor.
const Device* provider_device(const qcts_kernel& kernel);
const DeviceMemory* provider_device_memory(const qcts_kernel& kernel);
// Returns the seconds of CPU time used by the process that runs the kernel.
double provider_cpu_seconds(const qcts_kernel& kernel);
// Returns ": " and the reason that the kernel gives for its last QCTS_FAILED; empty if it gives none.
std::string provider_failure(const qcts_kernel& kernel);
// `provider` is one of file_implementations() and must have the function. Status and reason are as in
// supports().
Support provider_load_save(const Implementation& provider, const std::filesystem::path& input,
                           const std::filesystem::path& output);
Support provider_run_program(const Implementation& provider, const qcts_program_call& call);

}  // namespace qcts
