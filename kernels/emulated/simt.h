// SPDX-License-Identifier: BSD-3-Clause
// The executor: runs kernels that are written in CUDA on a processor, and is meaner than a GPU. One block
// runs at a time; each of its threads is a fiber that yields only where it waits. Which one goes on, and when
// asynchronous copies arrive, follows the Schedule, so that what a GPU leaves to chance happens on purpose:
// shared memory begins as 0xFF, copies arrive at the last moment or at the first, and a waiting thread may be
// the next or the last.
//
// A fault (an access outside the buffers, a misaligned one, a copy that nobody waits for, lanes that wait for
// different things, a block in which all threads wait) ends the launch with a text that names buffer, offset,
// block and thread. Global state: one launch at a time, from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/executor.h"

namespace qcts::simt {

// When copies arrive, and who goes on.
struct Schedule {
  uint64_t seed = 0;   // 0: threads and blocks in order; otherwise at random
  bool early = false;  // copies arrive when they are issued, not when they are waited for
};
inline constexpr uint32_t kSchedules = 4;
// In order and late; at random and late; at random and early; at random and late with another seed.
Schedule schedule(uint32_t number);

// Tensor cores differ in how they sum.
enum class Architecture : uint8_t { ampere, hopper };

// Memory that the kernels may touch: `rows` of `row_bytes`, `stride_bytes` apart. What lies between rows is
// not part of it.
struct Buffer {
  std::string name;
  const uint8_t* first;
  uint64_t rows, row_bytes, stride_bytes;
  bool writable;
  uint64_t bytes() const { return rows == 0 ? 0 : (rows - 1) * stride_bytes + row_bytes; }
};

struct Settings {
  Schedule schedule;
  Architecture architecture = Architecture::ampere;
  std::vector<Buffer> buffers;  // empty: global memory is not checked
  bool checks = false;          // those of simt_checks.h
  bool counts = false;          // with them, sectors and turns of banks
};
// Holds from the next launch on.
void configure(Settings settings);

// --- For the executor's own files
// ------------------------------------------------------------------------------

inline constexpr uint32_t kLanes = 32, kMaxThreads = 1024;
// Of a block, on request: what compute capability 9.0 has, and what all from 8.0 on have (8.6 has the least).
inline constexpr uint32_t kMaxSharedBytes = 227 << 10, kAmpereSharedBytes = 99 << 10;

const Settings& settings();
// A number below `count`, which is not 0, from the schedule's seed.
uint32_t random_below(uint32_t count);
// Ends the launch.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fault(const char* format, ...);
// The running thread waits until another calls wake() with its number. `what` is named if nobody does.
void wait_for(const char* what);
void wake(uint32_t thread);

enum class Use : uint8_t { read, write };
// Faults unless the running thread may read or write `bytes`, a power of two and the alignment, at `at`.
void check_access(Space space, const void* at, uint32_t bytes, Use use);
// The same for any number of bytes at any alignment.
void check_range(Space space, const void* at, uint32_t bytes, Use use);
// "x+24", "shared memory+8", or an address. Not on the heap: a fault leaves the stacks as they are.
struct PlaceText {
  char text[96];
};
PlaceText place_of(const void* at);
// Called for each access of code that is compiled with -fsanitize=thread (simt_hooks.cc): a fault if it
// touches shared memory or a buffer other than through device.h.
void note_bare_access(const void* at, uint32_t bytes, Use use);
// True while a thread of a block runs.
bool is_running();
// Notes an ordinary store, and faults if one has not been shown to what is about to use the bytes in another
// way.
void note_shared_store(const void* at, uint32_t bytes);
void check_fenced(const void* at, uint32_t bytes, const char* what);

// Waits until all lanes of the running thread's warp have called with the same `what` and detail; the last
// one calls compute(what each lane passed).
void all_lanes(const char* what, uint32_t detail, void* argument, void (*compute)(void* const* of_lanes));

// Called by launch(): when a block begins, and when a thread returns.
void begin_memory(uint32_t shared_bytes);
void begin_copies();
void begin_warps();
void begin_barriers(uint32_t shared_bytes);
void begin_wgmma();
void end_copies_of_thread();
void end_wgmma_of_thread();
void end_barriers_of_block();
// Lets one asynchronous copy arrive, if there is one. Called when no thread can run, which is as late as
// possible.
bool deliver_one_late();

}  // namespace qcts::simt
