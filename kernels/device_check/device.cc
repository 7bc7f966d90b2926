// SPDX-License-Identifier: BSD-3-Clause
#include <cuda_runtime.h>

#include <cstdio>

#include "kernels/cuda/failure.h"
#include "kernels/device_check/backend.h"

namespace qcts::device_check {
namespace {

constexpr int kUnwritten = 0xA5;

// Memory of the GPU that is kept from one check to the next.
struct Memory {
  void* at = nullptr;
  size_t bytes = 0;
  cudaError_t reserve(size_t wanted) {
    if (wanted <= bytes) return cudaSuccess;
    cudaFree(at);
    at = nullptr;
    bytes = 0;
    const cudaError_t error = cudaMalloc(&at, wanted);
    if (error == cudaSuccess) bytes = wanted;
    return error;
  }
};
Memory common, in, out;

std::string open_device(Machine* machine) {
  *machine = {};
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  cudaDeviceProp properties = {};
  if (error == cudaSuccess && count > 0) error = cudaGetDeviceProperties(&properties, 0);
  if (error == cudaSuccess && count > 0) error = cudaFree(nullptr);  // makes the context
  cudaDriverGetVersion(&machine->driver);
  cudaRuntimeGetVersion(&machine->runtime);
  if (machine->driver == 0) return "there is no CUDA driver";
  if (error != cudaSuccess) return std::string("CUDA: ") + cudaGetErrorString(error);
  if (count == 0) return "CUDA finds no device";
  std::snprintf(machine->name, sizeof machine->name, "%s", properties.name);
  machine->capability = 10 * properties.major + properties.minor;
  return "";
}

// Copies the inputs to the GPU, launches, waits, and copies the outputs back.
std::string run_on_device(const Check& check, const Cases& cases) {
  const size_t common_bytes = size_t{4} * check.common_words,
               in_bytes = size_t{4} * check.in_words * cases.count,
               out_bytes = size_t{4} * check.out_words * cases.count;
  cudaError_t error = common.reserve(common_bytes + 1);
  if (error == cudaSuccess) error = in.reserve(in_bytes + 1);
  if (error == cudaSuccess) error = out.reserve(out_bytes + 1);
  if (error == cudaSuccess) error = cudaMemcpy(common.at, cases.common, common_bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) error = cudaMemcpy(in.at, cases.in, in_bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) error = cudaMemset(out.at, kUnwritten, out_bytes);
  if (error != cudaSuccess) return std::string("CUDA: ") + cudaGetErrorString(error);
  const Cases there = {static_cast<const uint8_t*>(common.at), static_cast<const uint8_t*>(in.at),
                       static_cast<uint8_t*>(out.at), cases.count};
  if (check.run(there) != QCTS_OK) {
    char why[1024];
    last_failure(why, sizeof why);
    return why;
  }
  error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaMemcpy(cases.out, out.at, out_bytes, cudaMemcpyDeviceToHost);
  return error == cudaSuccess ? "" : std::string("CUDA: ") + cudaGetErrorString(error);
}

}  // namespace

const Backend kDevice = {"GPU", on_device::checks, open_device, run_on_device};

}  // namespace qcts::device_check
