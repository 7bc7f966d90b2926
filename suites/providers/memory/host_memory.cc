// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/memory/host_memory.h"

#include <algorithm>
#include <new>
#include <utility>

#include "suites/host/message.h"

namespace qcts {

HostMemory::HostMemory(const Windows& windows, const std::optional<DeviceLayout>& layout)
    : layout_(layout), is_on_device_(layout.has_value()) {
  static_assert(kBuffersOffset == kGuardsOffset);
  const size_t first = layout ? layout->rest_offset() : kBuffersOffset,
               bytes = layout ? std::min(layout->bytes, windows.bytes()) : windows.bytes();
  for (const auto& [window, base] :
       {std::pair{&windows_[0], windows.inputs()}, {&windows_[1], windows.outputs()}})
    *window = {base, base + first, base + bytes, {}};
}

std::optional<HostBlock> HostMemory::take_slot(std::string name, HostAccess access, size_t open_bytes,
                                               bool at_end) {
  const std::lock_guard lock(mutex_);
  if (!layout_ || !layout_->has_guards || open_bytes > layout_->granule_bytes) return std::nullopt;
  Window& window = windows_[static_cast<size_t>(access)];
  const size_t granule = layout_->granule_bytes, guard = granule / 2;
  for (size_t slot = 0; slot < DeviceLayout::kSlots; ++slot) {
    std::byte* const first = window.base + layout_->slot_offset(slot);
    if (window.blocks.contains(first - guard)) continue;
    const std::span<std::byte> all(first - guard, granule + 2 * guard);
    const std::span<std::byte> open = all.subspan(at_end ? guard + granule - open_bytes : guard, open_bytes);
    return window.blocks.emplace(all.data(), HostBlock{std::move(name), all, open, access, false})
        .first->second;
  }
  return std::nullopt;
}

// Begins after the last block: blocks are given back almost in the reverse order.
std::span<std::byte> HostMemory::take(std::string name, HostAccess access, size_t bytes, size_t open_offset,
                                      size_t open_bytes, bool is_timed) {
  const std::lock_guard lock(mutex_);
  Window& window = windows_[static_cast<size_t>(access)];
  std::byte* first = window.first;
  if (!window.blocks.empty()) {
    const std::span<std::byte> last = window.blocks.rbegin()->second.all;
    first = std::max(first, last.data() + last.size());
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
