// SPDX-License-Identifier: BSD-3-Clause
// A GPU as judge and host use it: the driver, the primary context, and the GPU's properties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/abi/qcts_kernel.h"
#include "suites/base/cuda_driver.h"

namespace qcts {

struct DeviceProperties {
  std::string name, uuid;   // "NVIDIA H100 80GB HBM3", "GPU-8f6c..."
  uint32_t capability = 0;  // 10 * major + minor
  uint32_t multiprocessors = 0, shared_bytes_per_block = 0;
  uint32_t driver_version = 0;  // 1000 * major + 10 * minor
  uint64_t l2_bytes = 0, memory_bytes = 0;
  bool has_ecc = false, is_mig = false;
  bool exports_memory = false;  // to another process, through a file descriptor
};

// Reads the properties without a context. Throws CudaError, also if there is no such GPU.
DeviceProperties device_properties(const CudaDriver& driver, int ordinal);

class Device {
 public:
  // Opens the driver and retains the primary context of the device, which becomes current on this thread.
  // Throws CudaError.
  explicit Device(int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void make_current() const;  // on this thread
  int ordinal() const { return ordinal_; }
  const CudaDriver& driver() const { return *driver_; }
  const DeviceProperties& properties() const { return properties_; }
  // The form of the ABI; its name lives as long as this object.
  const qcts_device& described() const { return described_; }

 private:
  std::shared_ptr<const CudaDriver> driver_;
  const int ordinal_;
  int device_ = 0;
  CuContext context_ = nullptr;
  DeviceProperties properties_;
  qcts_device described_{};
};

// Work of a stream that was captured in a graph, and can be launched again.
class CapturedWork {
 public:
  // Takes the graph over. Throws CudaError.
  CapturedWork(const Device& device, CuGraph graph);
  ~CapturedWork();
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;
  size_t kernels() const { return kernels_; }
  CuResult launch(CuStream stream) const;

 private:
  void instantiate();
  const Device& device_;
  CuGraph graph_;
  CuGraphExec instance_ = nullptr;
  size_t kernels_ = 0;
};

// A stream that does not wait for the legacy stream.
class DeviceStream {
 public:
  // The device must be current on this thread and outlive the stream, which lives as long as the process.
  explicit DeviceStream(const Device& device);
  CuStream get() const { return stream_; }
  // Waits for the stream. Throws CudaError.
  void wait() const;

 private:
  const Device& device_;
  CuStream stream_ = nullptr;
};

}  // namespace qcts
