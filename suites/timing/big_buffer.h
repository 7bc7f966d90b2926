// SPDX-License-Identifier: BSD-3-Clause
// Large memory for timed calls and for the machine's roofs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "suites/providers/memory/host_memory.h"

namespace qcts {

// Memory of whole pages, all of which are touched before a timed call. It is shared memory, in a host's
// windows or not, so that kernels and roofs have pages of the same size: a kernel that reads 8 MiB in pages
// of 4 KiB misses the TLB 2,000 times, and in huge pages 4 times.
class BigBuffer {
 public:
  explicit BigBuffer(size_t bytes);
  // A block of a host's windows, which must outlive the buffer; memory of this process if it is nullptr. On a
  // device, data() is an address of the window and holds nothing: the bytes are on the device (operands.h).
  BigBuffer(size_t bytes, std::string name, HostAccess access, HostMemory* memory);
  ~BigBuffer();
  BigBuffer(BigBuffer&& other) noexcept
      : memory_(other.memory_), data_(std::exchange(other.data_, {})), bytes_(other.bytes_) {}
  BigBuffer& operator=(BigBuffer&& other) noexcept;
  std::byte* data() const { return data_.data(); }
  size_t size() const { return bytes_; }

 private:
  HostMemory* memory_ = nullptr;
  std::span<std::byte> data_;  // whole pages
  size_t bytes_ = 0;
};

}  // namespace qcts
