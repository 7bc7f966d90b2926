// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/emulated/simt_checks.h"

#include <algorithm>
#include <cstring>

#include "kernels/emulated/simt_counts.h"

namespace qcts::simt {
namespace {

// The last touch of a byte. `thread` is the number of the thread, plus 1; 0: nobody.
struct Touch {
  uint16_t thread = 0;
  uint16_t warp_epoch = 0;
  uint32_t epoch = 0;  // number of block barriers from the start of the launch to this touch
};
constexpr uint16_t kSeveral = 0xFFFF;  // several threads of more than one warp
struct Cell {
  Touch write, read;
  uint32_t block = 0;  // number of the block that wrote last, plus 1
  bool is_written = false;
  bool under_way = false;    // a copy to it is under way
  bool atomic = false;       // the last write was atomic
  bool of_one_warp = false;  // several threads of one warp have read, and `read` is the last of them
};

struct Checks {
  std::vector<Cell> shared;
  std::vector<std::vector<Cell>> buffers;  // as settings().buffers; those that are not writable are empty
  uint32_t epoch = 1;
  uint16_t warp_epochs[kMaxThreads / kLanes];
  bool looks_for_races = true;
};
Checks checks;

uint32_t warp_of(uint32_t thread) { return thread / kLanes; }
uint32_t block_number() {
  return (place.block[2] * place.grid[1] + place.block[1]) * place.grid[0] + place.block[0];
}

Touch now() {
  return {static_cast<uint16_t>(place.thread + 1), checks.warp_epochs[warp_of(place.thread)], checks.epoch};
}

// Returns true if there is a barrier between that touch and the running thread, or if the touch is the
// thread's own.
bool ordered(const Touch& touch) {
  if (touch.thread == 0 || touch.epoch != checks.epoch) return true;
  if (touch.thread == kSeveral) return false;
  const uint32_t thread = touch.thread - 1u;
  return thread == place.thread || (warp_of(thread) == warp_of(place.thread) &&
                                    touch.warp_epoch != checks.warp_epochs[warp_of(thread)]);
}

[[noreturn]] void fault_race(const char* what, const void* at, const char* did, const Touch& touch) {
  if (touch.thread == kSeveral)
    fault("race: %s %s, which several threads %s with no barrier between", what, place_of(at).text, did);
  fault("race: %s %s, which thread %u %s with no barrier between", what, place_of(at).text, touch.thread - 1u,
        did);
}

void note_read(Cell& cell, const void* at) {
  if (!ordered(cell.write) && !cell.atomic) fault_race("reads", at, "wrote", cell.write);
  const Touch own = now();
  const bool goes_on =
      cell.read.thread != 0 && cell.read.epoch == checks.epoch && cell.read.thread != own.thread;
  if (!goes_on) {
    if (cell.read.epoch != checks.epoch) cell.of_one_warp = false;
    cell.read = own;
  } else if (cell.read.thread != kSeveral && warp_of(cell.read.thread - 1u) == warp_of(place.thread)) {
    cell.of_one_warp = true;
    cell.read = own;
  } else {
    cell.read.thread = kSeveral;
  }
}

// Returns true if another lane of the writer's warp has read, and no sync_warp() came since.
bool read_by_warp_since(const Cell& cell) {
  return cell.of_one_warp && cell.read.thread != kSeveral && cell.read.epoch == checks.epoch &&
         warp_of(cell.read.thread - 1u) == warp_of(place.thread) &&
         cell.read.warp_epoch == checks.warp_epochs[warp_of(place.thread)];
}

void note_write(Cell& cell, const void* at, Kind kind) {
  const bool both_atomic = kind == Kind::atomic && cell.atomic;
  if (!both_atomic && !ordered(cell.write)) fault_race("writes", at, "wrote", cell.write);
  if (kind != Kind::atomic && (!ordered(cell.read) || read_by_warp_since(cell)))
    fault_race("writes", at, "read", cell.read);
  cell.write = now();
  cell.atomic = kind == Kind::atomic;
  cell.is_written = true;
  cell.block = block_number() + 1;
}

// Returns the cells of [at, at + bytes), or nullptr if nobody writes there.
Cell* cells_at(Space space, const void* at) {
  const auto* byte = static_cast<const uint8_t*>(at);
  if (space == Space::shared) return &checks.shared[static_cast<size_t>(byte - shared_memory())];
  for (size_t i = 0; i < checks.buffers.size(); ++i) {
    const Buffer& buffer = settings().buffers[i];
    if (byte >= buffer.first && byte < buffer.first + checks.buffers[i].size())
      return &checks.buffers[i][static_cast<size_t>(byte - buffer.first)];
  }
  return nullptr;
}

void check_blocks(const Cell& cell, const void* at, Use use, Kind kind) {
  if (cell.block == 0 || cell.block == block_number() + 1 || (kind == Kind::atomic && cell.atomic)) return;
  fault("race: %s %s, which block %u of this launch wrote", use == Use::write ? "writes" : "reads",
        place_of(at).text, cell.block - 1);
}

}  // namespace

void begin_checks_of_launch() {
  if (!settings().checks) return;
  checks.buffers.clear();
  for (const Buffer& buffer : settings().buffers)
    checks.buffers.emplace_back(buffer.writable ? static_cast<size_t>(buffer.bytes()) : 0);
}

void begin_checks_of_block(uint32_t shared_bytes) {
  if (!settings().checks) return;
  checks.shared.assign(shared_bytes, {});
  ++checks.epoch;
  std::memset(checks.warp_epochs, 0, sizeof checks.warp_epochs);
  checks.looks_for_races = true;
}

void end_checks_of_block() {
  if (settings().checks) finish_counts();
}

void pass_block_barrier() { ++checks.epoch; }

void pass_warp_barrier(uint32_t warp, uint32_t mask) {
  if (mask == ~0u) ++checks.warp_epochs[warp];
}

void stop_race_checks_of_block() { checks.looks_for_races = false; }

void note_access(Space space, const void* at, uint32_t bytes, Use use, Kind kind, const void* site) {
  if (!settings().checks) return;
  if (site != nullptr && settings().counts) count_access(space, at, bytes, use, site);
  Cell* cells = cells_at(space, at);
  if (cells == nullptr) return;
  for (uint32_t i = 0; i < bytes; ++i) {
    const uint8_t* byte = static_cast<const uint8_t*>(at) + i;
    Cell& cell = cells[i];
    if (cell.under_way) fault("touches %s while a copy to it is under way", place_of(byte).text);
    if (space == Space::shared && use == Use::read && !cell.is_written)
      fault("reads %s, which nothing wrote", place_of(byte).text);
    if (space == Space::global) check_blocks(cell, byte, use, kind);
    if (kind == Kind::asynchronous || !checks.looks_for_races) {
      cell.is_written = cell.is_written || use == Use::write;
    } else if (use == Use::write) {
      note_write(cell, byte, kind);
    } else {
      note_read(cell, byte);
    }
  }
}

void note_copy_begins(const void* shared, uint32_t bytes) {
  if (!settings().checks) return;
  note_access(Space::shared, shared, bytes, Use::write, Kind::ordinary, nullptr);
  Cell* cells = cells_at(Space::shared, shared);
  for (uint32_t i = 0; i < bytes; ++i) cells[i].under_way = true;
}

void note_copy_ends(const void* shared, uint32_t bytes) {
  if (!settings().checks) return;
  Cell* cells = cells_at(Space::shared, shared);
  for (uint32_t i = 0; i < bytes; ++i) {
    cells[i].under_way = false;
    cells[i].write = now();
  }
}

}  // namespace qcts::simt
