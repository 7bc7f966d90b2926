// SPDX-License-Identifier: BSD-3-Clause
// The memory of the executor: buffers, the shared arena, and asynchronous copies.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/emulated/simt.h"
#include "kernels/emulated/simt_checks.h"

namespace qcts::simt {
namespace {

struct Copy {
  uint8_t* to;
  const uint8_t* from;  // nullptr: the copy writes zeros
  uint32_t bytes;
  uint32_t group;
};

struct Memory {
  alignas(1024) uint8_t arena[kMaxSharedBytes];
  uint32_t shared_bytes = 0;
  std::vector<Copy> copies[kMaxThreads];  // oldest first; those of the last group are not committed
  uint32_t groups[kMaxThreads];           // number of commits
  size_t last_buffer = 0;
};
Memory memory;

// Returns false if `at` is outside the arena.
bool in_arena(const void* at) {
  const auto* byte = static_cast<const uint8_t*>(at);
  return byte >= memory.arena && byte < memory.arena + sizeof memory.arena;
}

// Returns the buffer that holds `at` or is nearest to it.
const Buffer* nearest_buffer(const uint8_t* at) {
  const Buffer* nearest = nullptr;
  uint64_t least = ~uint64_t{0};
  for (const Buffer& buffer : settings().buffers) {
    const uint64_t past = at < buffer.first ? static_cast<uint64_t>(buffer.first - at)
                          : at - buffer.first < static_cast<int64_t>(buffer.bytes())
                              ? 0
                              : static_cast<uint64_t>(at - buffer.first) - buffer.bytes() + 1;
    if (past < least) least = past, nearest = &buffer;
  }
  return nearest;
}

// Beyond this distance an address is not named after a buffer.
constexpr int64_t kNearBytes = 1 << 20;

PlaceText place_text(const void* at) {
  const auto* byte = static_cast<const uint8_t*>(at);
  PlaceText place;
  auto& text = place.text;
  const Buffer* buffer = nearest_buffer(byte);
  if (in_arena(at))
    std::snprintf(text, sizeof text, "shared memory+%td", byte - memory.arena);
  else if (buffer == nullptr ||
           std::abs(byte - buffer->first) > kNearBytes + static_cast<int64_t>(buffer->bytes()))
    std::snprintf(text, sizeof text, "address %p", at);
  else
    std::snprintf(text, sizeof text, "%s%+td", buffer->name.c_str(), byte - buffer->first);
  return place;
}

const char* verb(Use use) { return use == Use::write ? "writes" : "reads"; }

[[noreturn]] void fault_outside(const uint8_t* at, uint32_t bytes, Use use) {
  const Buffer* buffer = nearest_buffer(at);
  if (buffer == nullptr)
    fault("%s %u bytes at %s, which is in no buffer", verb(use), bytes, place_text(at).text);
  fault("%s %u bytes at %s, which is not in %s (%llu x %llu bytes, %llu apart)", verb(use), bytes,
        place_text(at).text, buffer->name.c_str(), static_cast<unsigned long long>(buffer->rows),
        static_cast<unsigned long long>(buffer->row_bytes),
        static_cast<unsigned long long>(buffer->stride_bytes));
}

bool holds(const Buffer& buffer, const uint8_t* at, uint32_t bytes) {
  if (at < buffer.first) return false;
  const auto offset = static_cast<uint64_t>(at - buffer.first);
  if (offset + bytes > buffer.bytes()) return false;
  return buffer.row_bytes == buffer.stride_bytes || buffer.rows <= 1 ||
         offset % buffer.stride_bytes + bytes <= buffer.row_bytes;
}

void check_global(const uint8_t* at, uint32_t bytes, Use use) {
  const std::vector<Buffer>& buffers = settings().buffers;
  if (in_arena(at)) fault("%s %s as global memory", verb(use), place_text(at).text);
  if (buffers.empty()) return;
  size_t found = memory.last_buffer;
  if (found >= buffers.size() || !holds(buffers[found], at, bytes)) {
    found = 0;
    while (found < buffers.size() && !holds(buffers[found], at, bytes)) ++found;
    if (found == buffers.size()) fault_outside(at, bytes, use);
    memory.last_buffer = found;
  }
  if (use == Use::write && !buffers[found].writable)
    fault("writes %s, which is an input", place_text(at).text);
}

void check_shared(const uint8_t* at, uint32_t bytes, Use use) {
  if (at >= memory.arena && at + bytes <= memory.arena + memory.shared_bytes) return;
  if (!in_arena(at)) fault("%s %s as shared memory", verb(use), place_text(at).text);
  fault("%s %u bytes at %s: the block has %u bytes", verb(use), bytes, place_text(at).text,
        memory.shared_bytes);
}

void finish(const Copy& copy) {
  if (copy.from == nullptr)
    std::memset(copy.to, 0, copy.bytes);
  else
    std::memcpy(copy.to, global_place(copy.from), copy.bytes);
}

}  // namespace

PlaceText place_of(const void* at) { return place_text(at); }

void check_access(Space space, const void* at, uint32_t bytes, Use use) {
  if (reinterpret_cast<uintptr_t>(at) % bytes != 0)
    fault("%s %u bytes at %s, which is not a multiple of %u", verb(use), bytes, place_text(at).text, bytes);
  check_range(space, at, bytes, use);
}

void check_range(Space space, const void* at, uint32_t bytes, Use use) {
  if (space == Space::shared)
    check_shared(static_cast<const uint8_t*>(at), bytes, use);
  else
    check_global(static_cast<const uint8_t*>(at), bytes, use);
}

void note_bare_access(const void* at, uint32_t bytes, Use use) {
  if (!is_running()) return;
  const auto* byte = static_cast<const uint8_t*>(at);
  bool of_kernel = in_arena(at);
  for (const Buffer& buffer : settings().buffers)
    of_kernel = of_kernel || (byte + bytes > buffer.first && byte < buffer.first + buffer.bytes());
  if (of_kernel)
    fault("%s %u bytes at %s other than through device.h", verb(use), bytes, place_text(at).text);
}

uint8_t* shared_memory() { return memory.arena; }

void load(Space space, const void* at, void* value, uint32_t bytes) {
  check_access(space, at, bytes, Use::read);
  note_access(space, at, bytes, Use::read, Kind::ordinary, __builtin_return_address(0));
  std::memcpy(value, space == Space::global ? global_place(at) : at, bytes);
}

void store(Space space, void* at, const void* value, uint32_t bytes) {
  check_access(space, at, bytes, Use::write);
  note_access(space, at, bytes, Use::write, Kind::ordinary, __builtin_return_address(0));
  std::memcpy(space == Space::global ? global_place(at) : at, value, bytes);
  if (space == Space::shared) note_shared_store(at, bytes);
}

void atomic_max(uint32_t* at, uint32_t value) {
  check_access(Space::global, at, sizeof *at, Use::write);
  note_access(Space::global, at, sizeof *at, Use::write, Kind::atomic, nullptr);
  uint32_t& word = *global_place(at);
  word = std::max(word, value);
}
void atomic_or(uint32_t* at, uint32_t value) {
  check_access(Space::global, at, sizeof *at, Use::write);
  note_access(Space::global, at, sizeof *at, Use::write, Kind::atomic, nullptr);
  *global_place(at) |= value;
}

void copy_async(void* shared, const void* from, uint32_t bytes, bool valid) {
  check_access(Space::shared, shared, bytes, Use::write);
  if (valid) {
    check_access(Space::global, from, bytes, Use::read);
    note_access(Space::global, from, bytes, Use::read, Kind::ordinary, __builtin_return_address(0));
  }
  note_copy_begins(shared, bytes);
  std::vector<Copy>& copies = memory.copies[place.thread];
  copies.push_back({static_cast<uint8_t*>(shared), valid ? static_cast<const uint8_t*>(from) : nullptr, bytes,
                    memory.groups[place.thread]});
  if (settings().schedule.early)
    finish(copies.back());
  else
    std::memset(shared, 0xFF, bytes);
}

void commit_copies() { ++memory.groups[place.thread]; }

void wait_copies(uint32_t unfinished) {
  std::vector<Copy>& copies = memory.copies[place.thread];
  const uint32_t committed = memory.groups[place.thread];
  const uint32_t finished = committed > unfinished ? committed - unfinished : 0;
  auto copy = copies.begin();
  for (; copy != copies.end() && copy->group < finished; ++copy) {
    if (!settings().schedule.early) finish(*copy);
    note_copy_ends(copy->to, copy->bytes);
  }
  copies.erase(copies.begin(), copy);
}

void begin_memory(uint32_t shared_bytes) {
  memory.shared_bytes = shared_bytes;
  std::memset(memory.arena, 0xFF, shared_bytes);
}

void begin_copies() {
  for (uint32_t t = 0; t < place.threads; ++t) {
    memory.copies[t].clear();
    memory.groups[t] = 0;
  }
}

void end_copies_of_thread() {
  const std::vector<Copy>& copies = memory.copies[place.thread];
  if (copies.empty()) return;
  const bool committed = copies.back().group < memory.groups[place.thread];
  fault("returns with %zu unfinished copies, which it did not %s", copies.size(),
        committed ? "wait for" : "commit");
}

}  // namespace qcts::simt
