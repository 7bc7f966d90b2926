// SPDX-License-Identifier: BSD-3-Clause
// The bytes of timed operands: in memory that this process can address, or on the device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "suites/host/device/device_memory.h"

namespace qcts {

// Writes and reads at addresses of BigBuffers. What was written is there for the kernel once finish()
// returns. On a device, all of these functions throw CudaError.
class Operands {
 public:
  virtual ~Operands() = default;
  virtual void write(std::byte* to, std::span<const std::byte> bytes) = 0;
  virtual void fill(std::byte* to, size_t bytes, std::byte value) = 0;
  virtual void read(const std::byte* from, std::span<std::byte> to) const = 0;
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void finish() const {}
  // Returns the multiple at which an operand begins: the ABI promises it for workspace and prepared weights.
  virtual size_t alignment() const = 0;

  template <class T>
  T value_at(const std::byte* from) const {
    T value{};
    read(from, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
};

// `device` may be nullptr. It must outlive the result.
std::unique_ptr<Operands> operands_in(const DeviceMemory* device);

}  // namespace qcts
