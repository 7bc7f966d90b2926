// SPDX-License-Identifier: BSD-3-Clause
// Gives out memory of the windows that a judge shares with a host (suites/host/windows.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "suites/host/device/device_memory.h"
#include "suites/host/windows.h"

namespace qcts {

// The host's right to a block. The judge may write to all of them.
enum class HostAccess : uint8_t { reads, writes };

// One piece of memory: `open` is what the host may use in a call, the rest stays inaccessible to it.
struct HostBlock {
  std::string name;
  std::span<std::byte> all, open;  // both of whole pages
  HostAccess access = HostAccess::reads;
  // Timed calls use it: the host touches its pages as it opens them. On a device, its bytes are only there.
  bool is_timed = false;
};

class HostMemory {
 public:
  // With `layout`, it gives out the first bytes of each window, which device memory backs.
  explicit HostMemory(const Windows& windows, const std::optional<DeviceLayout>& layout = {});
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  bool is_on_device() const { return is_on_device_; }
  // Returns `bytes` of memory with undefined contents, of which `open_bytes` from `open_offset` on are open.
  // Throws std::bad_alloc if the window is full. [thread-safe]
  std::span<std::byte> take(std::string name, HostAccess access, size_t bytes, size_t open_offset,
                            size_t open_bytes, bool is_timed = false);
  // On a device with guards: as take(), for a block whose open part is a slot. Its first or, with `at_end`,
  // its last byte touches what is not mapped. Returns nullopt if it does not fit or no slot is free.
  // [thread-safe]
  std::optional<HostBlock> take_slot(std::string name, HostAccess access, size_t open_bytes, bool at_end);
  void give_back(std::span<std::byte> memory);  // [thread-safe]
  // Returns the block whose open part holds the address, or nullopt. [thread-safe]
  std::optional<HostBlock> block_of(const void* address) const;
  // As block_of(), for the inaccessible parts around it. [thread-safe]
  std::optional<HostBlock> block_around(const void* address) const;

 private:
  std::optional<HostBlock> find(const std::byte* address, bool is_open) const;

  struct Window {
    std::byte *base = nullptr, *first = nullptr, *end = nullptr;  // first: of what is not a slot
    std::map<const std::byte*, HostBlock> blocks = {};            // by their first byte
  };
  std::array<Window, 2> windows_;  // by HostAccess
  const std::optional<DeviceLayout> layout_;
  const bool is_on_device_;
  mutable std::mutex mutex_;
};

}  // namespace qcts
