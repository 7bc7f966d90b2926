// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/provider_call.h"

#include <chrono>
#include <stdexcept>
#include <string>

#include "suites/base/process.h"
#include "suites/providers/hosted_provider.h"
#include "suites/providers/remote_provider.h"

namespace qcts {

KernelFacts provider_facts(const qcts_kernel& kernel, const qcts_problem& problem) {
  if (const auto* hosted = HostedProvider::kernel_of(kernel)) return hosted->owner->facts(*hosted, problem);
  return ask_facts(kernel, problem,
                   [&](const qcts_problem& asked) { return provider_supports(kernel, asked); });
}

Support provider_supports(const qcts_kernel& kernel, const qcts_problem& problem) {
  if (const auto* hosted = HostedProvider::kernel_of(kernel))
    return hosted->owner->supports(*hosted, problem);
  const RemoteProvider::Kernel* remote = RemoteProvider::kernel_of(kernel);
  return guarded_support(kernel.variant, "supports", [&](char* why, size_t why_size) {
    return remote ? remote->owner->supports(*remote, problem, why, why_size)
                  : kernel.supports(&problem, why, why_size);
  });
}

Support provider_load_save(const Implementation& provider, const std::filesystem::path& input,
                           const std::filesystem::path& output) {
  return guarded_support(provider.provider, "load_save", [&](char* why, size_t why_size) {
    return provider.files.load_save(input.c_str(), output.c_str(), why, why_size);
  });
}

Support provider_run_program(const Implementation& provider, const qcts_program_call& call) {
  return guarded_support(provider.provider, "run_program", [&](char* why, size_t why_size) {
    return provider.files.run_program(&call, why, why_size);
  });
}

uint64_t provider_workspace_bytes(const qcts_kernel& kernel, const qcts_problem& problem) {
  if (kernel.workspace_bytes == nullptr) return 0;
  if (const auto* hosted = HostedProvider::kernel_of(kernel))
    return hosted->owner->workspace_bytes(*hosted, problem);
  return guarded_bytes(kernel.variant, "workspace_bytes", [&] { return kernel.workspace_bytes(&problem); });
}

uint64_t provider_prepared_bytes(const qcts_kernel& kernel, const qcts_problem& problem) {
  if (kernel.prepared_bytes == nullptr) return 0;
  if (const auto* hosted = HostedProvider::kernel_of(kernel))
    return hosted->owner->prepared_bytes(*hosted, problem);
  return guarded_bytes(kernel.variant, "prepared_bytes", [&] { return kernel.prepared_bytes(&problem); });
}

qcts_status provider_prepare(const qcts_kernel& kernel, const qcts_problem& problem, void* prepared) {
  if (const auto* hosted = HostedProvider::kernel_of(kernel))
    return hosted->owner->prepare(*hosted, problem, prepared);
  return guarded_status(kernel.variant, "prepare", [&] { return kernel.prepare(&problem, prepared); });
}

qcts_status provider_run(const qcts_kernel& kernel, const qcts_problem& problem, bool gated) {
  if (const auto* hosted = HostedProvider::kernel_of(kernel))
    return hosted->owner->run(*hosted, problem, gated);
  const RemoteProvider::Kernel* remote = RemoteProvider::kernel_of(kernel);
  return guarded_status(kernel.variant, "run",
                        [&] { return remote ? remote->owner->run(*remote, problem) : kernel.run(&problem); });
}

qcts_status provider_run_flushed(const qcts_kernel& kernel, const qcts_problem& problem) {
  if (const auto* hosted = HostedProvider::kernel_of(kernel))
    return hosted->owner->run_flushed(*hosted, problem);
  const FlushedSubnormals of_caller;
  return provider_run(kernel, problem);
}

namespace {

const HostedProvider::Kernel& kernel_on_device(const qcts_kernel& kernel) {
  const auto* hosted = HostedProvider::kernel_of(kernel);
  if (hosted == nullptr) throw std::logic_error("only a host has a device");
  return *hosted;
}

uint64_t kernels_of(const qcts_kernel& kernel, const HostedProvider::Capture& capture) {
  if (capture.status != QCTS_OK)
    throw ProviderFault("run() returned " + std::to_string(static_cast<int>(capture.status)) +
                        " while its stream captured a graph" + provider_failure(kernel));
  if (capture.kernels == 0)
    throw ProviderFault("run() put no kernel into the graph that its stream captured");
  return capture.kernels;
}

}  // namespace

void provider_capture(const qcts_kernel& kernel, const qcts_problem& problem) {
  const HostedProvider::Kernel& hosted = kernel_on_device(kernel);
  kernels_of(kernel, hosted.owner->capture(hosted, problem));
}

DeviceGraphs::DeviceGraphs(const qcts_kernel& kernel)
    : kernel_(kernel), number_(kernel_on_device(kernel).owner->take_graphs()) {}

DeviceGraphs::~DeviceGraphs() { kernel_on_device(kernel_).owner->give_back_graphs(number_); }

uint64_t DeviceGraphs::capture(std::span<const qcts_problem> problems, size_t calls_a_graph) const {
  const HostedProvider::Kernel& hosted = kernel_on_device(kernel_);
  return kernels_of(kernel_, hosted.owner->capture_batch(hosted, number_, problems, calls_a_graph));
}

BatchTime DeviceGraphs::time(const std::function<void()>& before) const {
  const HostedProvider::Kernel& hosted = kernel_on_device(kernel_);
  return hosted.owner->time_batch(hosted, number_, before);
}

const Device* provider_device(const qcts_kernel& kernel) {
  const auto* hosted = HostedProvider::kernel_of(kernel);
  return hosted ? hosted->owner->device() : nullptr;
}

const DeviceMemory* provider_device_memory(const qcts_kernel& kernel) {
  const auto* hosted = HostedProvider::kernel_of(kernel);
  return hosted ? hosted->owner->device_memory() : nullptr;
}

void provider_replay(const qcts_kernel& kernel, const qcts_problem& problem) {
  const HostedProvider::Kernel& hosted = kernel_on_device(kernel);
  hosted.owner->replay(hosted, problem);
}

BatchTime provider_run_batch(const qcts_kernel& kernel, std::span<const qcts_problem> problems,
                             const std::function<void()>& before, size_t n_awake, double slowed) {
  BatchTime time;
  qcts_status status = QCTS_OK;
  if (const auto* hosted = HostedProvider::kernel_of(kernel)) {
    status = hosted->owner->run_batch(*hosted, problems, before, time, n_awake, slowed);
  } else {
    for (size_t i = 0; i < n_awake && status == QCTS_OK; ++i) status = provider_run(kernel, problems[i]);
    before();
    const double cpu = own_cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = n_awake; i < problems.size() && status == QCTS_OK; ++i)
      status = provider_run(kernel, problems[i]);
    const auto end = std::chrono::steady_clock::now();
    time.wall_us = std::chrono::duration<double, std::micro>(end - start).count();
    time.cpu_us = (own_cpu_seconds() - cpu) * 1e6;
  }
  if (status != QCTS_OK) throw ProviderFault("run() failed on a problem that supports() accepts");
  return time;
}

HostMemory* provider_memory(const qcts_kernel& kernel) {
  const auto* hosted = HostedProvider::kernel_of(kernel);
  return hosted ? &hosted->owner->memory() : nullptr;
}

double provider_cpu_seconds(const qcts_kernel& kernel) {
  const auto* hosted = HostedProvider::kernel_of(kernel);
  return hosted ? hosted->owner->cpu_seconds() : own_cpu_seconds();
}

std::string provider_failure(const qcts_kernel& kernel) {
  if (const auto* hosted = HostedProvider::kernel_of(kernel)) return hosted->owner->failure();
  return guarded_failure(kernel);
}

}  // namespace qcts
