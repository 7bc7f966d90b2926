// SPDX-License-Identifier: BSD-3-Clause
// The device memory behind the windows that a judge and a host share (suites/host/windows.h). The judge makes
// it, writes inputs, poison and paint to it, and reads outputs and paint from it. The host imports it and
// hands out addresses. What lies at an offset of a window lies at the same offset of its device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "suites/host/device/device.h"

namespace qcts {

// Descriptors of the device memory in the host, as it is started.
inline constexpr int kDeviceInputsFd = 8, kDeviceOutputsFd = 9;
// Bytes of device memory behind each window, or a sixteenth of the device's memory if that is less: a kernel,
// its peers and the roofs each have two. Timed weights of 28672 x 8192 take turns, and so do their outputs.
inline constexpr size_t kDeviceWindowBytes = size_t{5} << 30;

// Gates lie at the beginning of the inputs, where the window has messages: a line for each lane.
inline constexpr size_t kGateBytes = 64;

// A mapping of physical device memory in this process.
class DeviceMapping {
 public:
  DeviceMapping() = default;
  // Maps `memory`, of which it becomes the owner. Throws CudaError.
  DeviceMapping(const Device& device, CuMemory memory, size_t bytes);
  ~DeviceMapping();
  DeviceMapping(DeviceMapping&& other) noexcept;
  DeviceMapping& operator=(DeviceMapping&& other) noexcept;
  CuAddress address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  const Device* device_ = nullptr;
  CuMemory memory_ = 0;
  CuAddress address_ = 0;
  size_t bytes_ = 0;
};

// The judge's side.
class DeviceMemory {
 public:
  // Allocates memory behind the first bytes of both windows, of which these are the addresses, and exports
  // it. Throws CudaError.
  DeviceMemory(const Device& device, const std::byte* inputs, const std::byte* outputs);
  size_t bytes() const { return inputs_.bytes(); }  // of each window
  int inputs_fd() const { return inputs_fd_; }
  int outputs_fd() const { return outputs_fd_; }
  void close_fds();  // once the host has them

  // Copies go on until wait(). They throw CudaError. [thread-safe]
  void copy_to_device(const std::byte* of_window, std::span<const std::byte> bytes) const;
  void copy_from_device(std::span<std::byte> to, const std::byte* of_window) const;
  // Within the device: `from` may lie in either window. As above. [thread-safe]
  void copy_within(const std::byte* to, const std::byte* from, size_t bytes) const;
  void fill(const std::byte* of_window, size_t bytes, std::byte value) const;
  void wait() const { stream_.wait(); }
  // Opens or shuts the gate of a lane, a word on which the host's stream waits.
  void set_gate(size_t lane, bool is_open) const;

 private:
  CuAddress place_of(const std::byte* of_window) const;

  const Device& device_;
  const std::byte *inputs_first_, *outputs_first_;
  DeviceMapping inputs_, outputs_;
  DeviceStream stream_;
  int inputs_fd_ = -1, outputs_fd_ = -1;
};

// The host's side.
class ImportedMemory {
 public:
  // Imports the descriptors and closes them. Throws CudaError.
  ImportedMemory(const Device& device, uintptr_t inputs, uintptr_t outputs);
  // Returns where the host's kernels find what lies at an address of a window; NULL for NULL.
  void* place_of(const void* of_window) const;
  CuAddress gate(size_t lane) const { return inputs_.address() + lane * kGateBytes; }

 private:
  const uintptr_t inputs_first_, outputs_first_;
  DeviceMapping inputs_, outputs_;
};

}  // namespace qcts
