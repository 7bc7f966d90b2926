// SPDX-License-Identifier: BSD-3-Clause
// Checks that cost memory and time (Settings::checks), on each access through device.h: shared memory that is
// read before it is written, races between the threads of a block and between blocks, and how many sectors
// and banks a warp's accesses touch. Barriers of the block and sync_warp() of whole warps order accesses;
// where a kernel orders them by wait_barrier(), races are not looked for.
#pragma once

#include "kernels/emulated/simt.h"

namespace qcts::simt {

// What the warps of one launch asked for. An access of a warp is what its lanes do at one place in the code
// in the same iteration.
struct AccessCounts {
  // 32-byte sectors of global memory, and how many would hold the same bytes.
  uint64_t sectors_read = 0, ideal_sectors_read = 0, sectors_written = 0, ideal_sectors_written = 0;
  // Turns that the banks of shared memory need, and how many they would need without conflicts.
  uint64_t turns = 0, ideal_turns = 0;
};
// Of all launches since configure().
AccessCounts access_counts();

// --- For the executor's own files; nothing happens unless settings().checks
// -------------------------------------

void clear_counts();
void begin_checks_of_launch();
void begin_checks_of_block(uint32_t shared_bytes);
void end_checks_of_block();
void pass_block_barrier();
void pass_warp_barrier(uint32_t warp, uint32_t mask);
// Barriers in shared memory order what this cannot see.
void stop_race_checks_of_block();

enum class Kind : uint8_t { ordinary, atomic, asynchronous };
void note_access(Space space, const void* at, uint32_t bytes, Use use, Kind kind, const void* site);
// An asynchronous copy by the running thread: from its start to its end nobody may touch the bytes.
void note_copy_begins(const void* shared, uint32_t bytes);
void note_copy_ends(const void* shared, uint32_t bytes);

}  // namespace qcts::simt
