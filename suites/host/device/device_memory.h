// SPDX-License-Identifier: BSD-3-Clause
// The device memory that backs the windows that a judge and a host share (suites/host/windows.h). The judge
// makes it, writes inputs, poison and paint to it, and reads outputs and paint from it. The host imports it
// and hands out addresses. What is at an offset of a window is at the same offset of its device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "suites/base/process.h"
#include "suites/host/device/device.h"

namespace qcts {

// Descriptors of the pieces of device memory in the host, as it is started: those of the inputs, and then as
// many of the outputs.
inline constexpr int kFirstDeviceFd = 8;
// Bytes of device memory that back each window, or a sixteenth of the device's memory if that is less: a
// kernel, its peers and the roofs each have two. Timed weights of 28672 x 8192 take turns, and so do their
// outputs.
inline constexpr size_t kDeviceWindowBytes = size_t{5} << 30;

// Gates are at the start of the inputs, where the window has messages: one line per lane.
inline constexpr size_t kGateBytes = 64;

// The offsets of a window that have device memory. With guards, it begins with a granule for the
// gates. Then, from kGuardsOffset on, slots of one granule are between granules that have
// none, so that a kernel that leaves a slot faults. The rest is one piece. Without guards, all is one
// piece.
struct DeviceLayout {
  struct Piece {
    size_t offset, bytes;
  };
  static constexpr size_t kSlots = 16;
  size_t bytes = 0, granule_bytes = 0;
  bool has_guards = false;

  std::vector<Piece> pieces() const;
  size_t slot_offset(size_t slot) const;
  size_t rest_offset() const;  // of the piece after the slots
};
inline constexpr int kMostDeviceFds = 2 * (static_cast<int>(DeviceLayout::kSlots) + 2);
static_assert(kFirstDeviceFd + kMostDeviceFds <= kFirstMovedFd);
inline constexpr size_t kGuardsOffset = size_t{1} << 25;  // the window's first bytes are messages

// Returns the layout of each window. Throws CudaError.
DeviceLayout device_layout(const Device& device, bool has_guards);

// A mapping of pieces of physical device memory in this process.
class DeviceMapping {
 public:
  DeviceMapping() = default;
  // Maps the pieces of the layout, of which it becomes the owner. Throws CudaError.
  DeviceMapping(const Device& device, const DeviceLayout& layout, std::vector<CuMemory> memory);
  ~DeviceMapping();
  DeviceMapping(DeviceMapping&& other) noexcept;
  DeviceMapping& operator=(DeviceMapping&& other) noexcept;
  CuAddress address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  void release() noexcept;

  const Device* device_ = nullptr;
  std::vector<DeviceLayout::Piece> pieces_;
  std::vector<CuMemory> memory_;
  size_t mapped_ = 0;  // the first pieces
  CuAddress address_ = 0;
  size_t bytes_ = 0;
};

// The judge's side.
class DeviceMemory {
 public:
  // Allocates memory for the first bytes of both windows, whose addresses these are, and exports
  // it. It has guards, unless the driver refuses them: no_guards() then says why. Throws CudaError.
  DeviceMemory(const Device& device, const std::byte* inputs, const std::byte* outputs);
  ~DeviceMemory() { close_fds(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  size_t bytes() const { return inputs_.bytes(); }  // of each window
  const DeviceLayout& layout() const { return layout_; }
  const std::string& no_guards() const { return no_guards_; }
  const std::vector<int>& fds() const { return fds_; }  // for kFirstDeviceFd and those after it
  void close_fds();                                     // once the host has them

  // Copies go on until wait(). They throw CudaError. [thread-safe]
  void copy_to_device(const std::byte* of_window, std::span<const std::byte> bytes) const;
  void copy_from_device(std::span<std::byte> to, const std::byte* of_window) const;
  // Within the device: `from` may be in either window. As above. [thread-safe]
  void copy_within(const std::byte* to, const std::byte* from, size_t bytes) const;
  void fill(const std::byte* of_window, size_t bytes, std::byte value) const;
  void wait() const { stream_.wait(); }
  // Opens or shuts the gate of a lane, a word on which the host's stream waits.
  void set_gate(size_t lane, bool is_open) const;

 private:
  CuAddress place_of(const std::byte* of_window) const;
  void allocate(bool has_guards);
  void probe_guards() const;

  const Device& device_;
  DeviceLayout layout_;
  std::string no_guards_;
  const std::byte *inputs_first_, *outputs_first_;
  DeviceMapping inputs_, outputs_;
  DeviceStream stream_;
  std::vector<int> fds_;
};

// The host's side.
class ImportedMemory {
 public:
  // Imports the descriptors and closes them. Throws CudaError.
  ImportedMemory(const Device& device, uintptr_t inputs, uintptr_t outputs, bool has_guards);
  // The device addresses that belong to the windows.
  CuAddress inputs() const { return inputs_.address(); }
  CuAddress outputs() const { return outputs_.address(); }
  // Returns where the host's kernels find what is at an address of a window; NULL for NULL.
  void* place_of(const void* of_window) const;
  CuAddress gate(size_t lane) const { return inputs_.address() + lane * kGateBytes; }

 private:
  const uintptr_t inputs_first_, outputs_first_;
  DeviceMapping inputs_, outputs_;
};

}  // namespace qcts
