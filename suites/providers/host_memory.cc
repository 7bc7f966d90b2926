// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/host_memory.h"

#include <new>
#include <utility>

#include "suites/host/message.h"

namespace qcts {

HostMemory::HostMemory(const Windows& windows, std::optional<size_t> device_bytes)
    : is_on_device_(device_bytes.has_value()) {
  const size_t bytes = device_bytes.value_or(windows.bytes());
  windows_ = {Window{windows.inputs() + kBuffersOffset, windows.inputs() + bytes},
              Window{windows.outputs() + kBuffersOffset, windows.outputs() + bytes}};
}

// Begins after the last block: blocks are given back almost in the reverse order.
std::span<std::byte> HostMemory::take(std::string name, HostAccess access, size_t bytes, size_t open_offset,
                                      size_t open_bytes, bool is_timed) {
  const std::lock_guard lock(mutex_);
  Window& window = windows_[static_cast<size_t>(access)];
  std::byte* first = window.first;
  if (!window.blocks.empty()) {
    const std::span<std::byte> last = window.blocks.rbegin()->second.all;
    first = last.data() + last.size();
  }
  if (bytes > static_cast<size_t>(window.end - first)) throw std::bad_alloc();
  const std::span<std::byte> all(first, bytes);
  window.blocks.emplace(
      first, HostBlock{std::move(name), all, all.subspan(open_offset, open_bytes), access, is_timed});
  return all;
}

void HostMemory::give_back(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  for (Window& window : windows_) window.blocks.erase(memory.data());
}

std::optional<HostBlock> HostMemory::block_of(const void* address) const {
  return find(static_cast<const std::byte*>(address), true);
}

std::optional<HostBlock> HostMemory::block_around(const void* address) const {
  return find(static_cast<const std::byte*>(address), false);
}

std::optional<HostBlock> HostMemory::find(const std::byte* address, bool is_open) const {
  const std::lock_guard lock(mutex_);
  for (const Window& window : windows_) {
    auto after = window.blocks.upper_bound(address);
    if (after == window.blocks.begin()) continue;
    const HostBlock& block = std::prev(after)->second;
    const std::span<std::byte> part = is_open ? block.open : block.all;
    if (address >= part.data() && address < part.data() + part.size()) return block;
  }
  return std::nullopt;
}

}  // namespace qcts
