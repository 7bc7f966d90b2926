// SPDX-License-Identifier: BSD-3-Clause
// Starts kernels: on a device if nvcc compiles, in the executor otherwise. Also builds rows of kernels.inc
// from functions that start kernels. The limits are checked in both cases, so a launch that a GPU refuses
// does not pass in the executor.
#pragma once

#include <tuple>
#include <type_traits>

#include "kernels/abi/problem.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/failure.h"
#include "kernels/families/entry.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace qcts {
namespace {

struct Launch {
  int64_t blocks_x, blocks_y = 1, blocks_z = 1;
  uint32_t threads;  // in a block; whole warps
  uint32_t shared_bytes = 0;
};

[[maybe_unused]] constexpr int64_t blocks_for(int64_t count, int64_t per_block) {
  return (count + per_block - 1) / per_block;
}

// From the CUDA C++ programming guide 13.0, table "technical specifications per compute capability".
constexpr int64_t kMaxGridX = 0x7FFFFFFF, kMaxGridYZ = 65535;
constexpr uint32_t kMaxBlockThreads = 1024;
constexpr uint32_t kSharedBytesWithoutAsking = 48 << 10;

[[maybe_unused]] qcts_status check_limits(const Launch& at) {
  const int64_t blocks[] = {at.blocks_x, at.blocks_y, at.blocks_z};
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t limit = axis == 0 ? kMaxGridX : kMaxGridYZ;
    if (blocks[axis] < 1 || blocks[axis] > limit)
      return launch_failed("a grid of %lld blocks in %c: 1 to %lld are possible",
                           static_cast<long long>(blocks[axis]), "xyz"[axis], static_cast<long long>(limit));
  }
  if (at.threads < 1 || at.threads > kMaxBlockThreads || at.threads % device::kWarpLanes != 0)
    return launch_failed("a block of %u threads: whole warps up to %u are possible", at.threads,
                         kMaxBlockThreads);
  return QCTS_OK;
}

// Starts kernel(arguments...) on the problem's stream. On a device it returns at once; in the executor it
// returns when the kernel has run, unless the launch waits for a stream (executor.h). Returns QCTS_OK, or
// QCTS_FAILED with last_failure().
template <class... Parameters, class... Arguments>
qcts_status launch([[maybe_unused]] const qcts_problem& problem, const Launch& at,
                   void (*kernel)(Parameters...), const Arguments&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "parameters are copied to the device");
  if (check_limits(at) != QCTS_OK) return QCTS_FAILED;
#if defined(__CUDACC__)
  const auto* entry = reinterpret_cast<const void*>(kernel);
  cudaError_t error = cudaSuccess;
  if (at.shared_bytes > kSharedBytesWithoutAsking)
    error = cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(at.shared_bytes));
  if (error == cudaSuccess) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(at.blocks_x), static_cast<unsigned>(at.blocks_y),
                          static_cast<unsigned>(at.blocks_z));
    config.blockDim = dim3(at.threads);
    config.dynamicSmemBytes = at.shared_bytes;
    config.stream = static_cast<cudaStream_t>(problem.stream);
    error = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  }
  if (error == cudaSuccess) return QCTS_OK;
  cudaGetLastError();  // otherwise the next call would be blamed
  return launch_failed("CUDA: %s", cudaGetErrorString(error));
#else
  const auto start = [at, kernel, given = std::tuple<Parameters...>(Parameters(arguments)...)] {
    const auto body = [&] { std::apply(kernel, given); };
    const uint32_t grid[3] = {static_cast<uint32_t>(at.blocks_x), static_cast<uint32_t>(at.blocks_y),
                              static_cast<uint32_t>(at.blocks_z)};
    return simt::launch(
        grid, at.threads, at.shared_bytes, [](void* context) { (*static_cast<decltype(body)*>(context))(); },
        const_cast<void*>(static_cast<const void*>(&body)));
  };
  if (simt::waiting_launches != nullptr) {
    simt::waiting_launches->push_back(start);
    return QCTS_OK;
  }
  const char* fault = start();
  return fault == nullptr ? QCTS_OK : launch_failed("%s", fault);
#endif
}

// run() of a row. It makes the row's own checks and those of its family. Then it calls kRun, which launches.
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
qcts_status run_launched(const qcts_problem* problem) {
  if (kKernel.supports(problem, nullptr, 0) != QCTS_OK || check_run(kKernel, problem) != QCTS_OK)
    return QCTS_INVALID;
  return has_no_rows(kKernel.op, *problem) ? QCTS_OK : kRun(*problem);
}
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
qcts_status run_launched_activation(const qcts_problem* problem) {
  if (check_run_activation<kKernel>(problem) != QCTS_OK) return QCTS_INVALID;
  return problem->m == 0 ? QCTS_OK : kRun(*problem);
}

using Supports = qcts_status (*)(const qcts_problem*, char*, size_t);

// Rows of kernels.inc. kRun(problem) launches the kernels that compute the problem. kSupports checks a
// problem if the family's checks are not enough.
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&), Supports kSupports = nullptr>
constexpr qcts_kernel exact_launched(qcts_op op, const char* scheme, const char* variant,
                                     const char* description) {
  return exact_entry(op, scheme, variant, description,
                     {.supports = kSupports != nullptr ? kSupports : supports_problem<kKernel>,
                      .run = run_launched<kKernel, kRun>,
                      .failure = last_failure});
}
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
constexpr qcts_kernel activation_launched(const char* scheme, const char* variant, const char* description) {
  return exact_entry(QCTS_OP_QUANTIZE_ACTIVATION, scheme, variant, description,
                     {.supports = supports_activation<kKernel>,
                      .run = run_launched_activation<kKernel, kRun>,
                      .failure = last_failure});
}
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&), Supports kSupports = nullptr>
constexpr qcts_kernel linear_launched(const char* scheme, const char* variant, const char* description,
                                      const qcts_numerics& numerics) {
  return linear_entry(scheme, variant, description, numerics,
                      {.supports = kSupports != nullptr ? kSupports : supports_problem<kKernel>,
                       .run = run_launched<kKernel, kRun>,
                       .failure = last_failure});
}

}  // namespace
}  // namespace qcts
