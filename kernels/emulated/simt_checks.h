// SPDX-License-Identifier: BSD-3-Clause
// Checks that cost memory and time (Settings::checks). They look at each access through device.h. They find
// shared memory that is read before it is written, and races between the threads of a block and between
// blocks. They count the sectors and banks that a warp's accesses touch. Barriers of the block and
// sync_warp() of whole warps order accesses. Races are not looked for where a kernel orders accesses by
// wait_barrier().
#pragma once

#include "kernels/emulated/simt.h"

namespace qcts::simt {

// Counts the accesses of the warps of one launch. An access of a warp is everything that its lanes do at one
// place in the code in the same iteration.
struct AccessCounts {
  // The 32-byte sectors of global memory. An ideal number counts the sectors that would hold the same bytes.
  uint64_t sectors_read = 0, ideal_sectors_read = 0, sectors_written = 0, ideal_sectors_written = 0;
  // The turns that the banks of shared memory need, and how many they would need without conflicts.
  uint64_t turns = 0, ideal_turns = 0;
};
// Returns the counts of all launches since configure().
AccessCounts access_counts();

// For the executor's own files; nothing happens unless settings().checks.

void clear_counts();
void begin_checks_of_launch();
void begin_checks_of_block(uint32_t shared_bytes);
void end_checks_of_block();
void pass_block_barrier();
void pass_warp_barrier(uint32_t warp, uint32_t mask);
// Barriers in shared memory order accesses in a way that these checks cannot see.
void stop_race_checks_of_block();

enum class Kind : uint8_t { ordinary, atomic, asynchronous };
void note_access(Space space, const void* at, uint32_t bytes, Use use, Kind kind, const void* site);
// These mark the start and the end of an asynchronous copy by the running thread. Between the two, nobody may
// touch the bytes.
void note_copy_begins(const void* shared, uint32_t bytes);
void note_copy_ends(const void* shared, uint32_t bytes);

}  // namespace qcts::simt
