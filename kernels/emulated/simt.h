// SPDX-License-Identifier: BSD-3-Clause
// The executor runs kernels that are written in CUDA on a processor, and is stricter than a GPU. It runs one
// block at a time. Each thread of the block is a fiber that yields only where it waits. The Schedule decides
// which thread goes on and when asynchronous copies arrive. Things that a GPU leaves to chance thus happen on
// purpose: shared memory begins as 0xFF, copies arrive at the last moment or at the first, and a waiting
// thread may run next or last.
//
// A fault ends the launch with a text that names the buffer, the offset, the block and the thread. These are
// faults: an access outside the buffers, a misaligned access, a copy that nobody waits for, lanes that wait
// for different things, and a block in which all threads wait. The state is global: one launch runs at a
// time, called from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/executor.h"

namespace qcts::simt {

// Decides when copies arrive and which thread goes on.
struct Schedule {
  uint64_t seed = 0;   // 0: threads and blocks run in order; otherwise at random
  bool early = false;  // true: copies arrive when they are issued; false: when they are waited for
};
inline constexpr uint32_t kSchedules = 4;
// Returns schedule `number`. Schedule 0 runs in order with late copies, 1 at random with late copies, 2 at
// random with early copies, and 3 at random with late copies and another seed.
Schedule schedule(uint32_t number);

// The tensor cores of the two architectures sum differently.
enum class Architecture : uint8_t { ampere, hopper };

// Memory that the kernels may touch: `rows` rows of `row_bytes`, which begin `stride_bytes` apart. The bytes
// between the rows are not part of it.
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
  bool checks = false;          // run the checks of simt_checks.h
  bool counts = false;          // with `checks`: also count sectors and bank turns
  // Bytes from an address of global memory to its place in this process: not 0 for a device's memory, which
  // the fake driver maps elsewhere (kernels/fakecuda).
  uintptr_t global_offset = 0;
};
// The settings apply from the next launch on.
void configure(Settings settings);

// For the executor's own files.

inline constexpr uint32_t kLanes = 32, kMaxThreads = 1024;
// The maximum shared memory of a block, on request: the first of compute capability 9.0, the second of all
// 8.0 and later (8.6 has the least).
inline constexpr uint32_t kMaxSharedBytes = 227 << 10, kAmpereSharedBytes = 99 << 10;

const Settings& settings();
// Returns where the bytes of global memory are in this process.
template <class T>
T* global_place(T* at) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(at) + settings().global_offset);
}
// Returns a random number below `count`, which must not be 0. The numbers follow from the schedule's seed.
uint32_t random_below(uint32_t count);
// Ends the launch with a fault.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fault(const char* format, ...);
// Makes the running thread wait until another thread calls wake() with its number. If none does, the fault
// names `what`.
void wait_for(const char* what);
void wake(uint32_t thread);

enum class Use : uint8_t { read, write };
// Faults unless the running thread may read or write `bytes` bytes at `at`. `bytes` is a power of two and
// also the alignment.
void check_access(Space space, const void* at, uint32_t bytes, Use use);
// Does the same for any number of bytes at any alignment.
void check_range(Space space, const void* at, uint32_t bytes, Use use);
// Contains "x+24", "shared memory+8" or an address. The text is not on the heap, because a fault leaves the
// stacks as they are.
struct PlaceText {
  char text[96];
};
PlaceText place_of(const void* at);
// Is called for each access of code that is compiled with -fsanitize=thread (simt_hooks.cc). Faults if the
// access touches shared memory or a buffer other than through device.h.
void note_bare_access(const void* at, uint32_t bytes, Use use);
// Returns true while a thread of a block runs.
bool is_running();
// note_shared_store() records an ordinary store. check_fenced() is called before `what` uses the bytes in
// another way. It faults if an ordinary store to them has not been shown to `what`.
void note_shared_store(const void* at, uint32_t bytes);
void check_fenced(const void* at, uint32_t bytes, const char* what);

// Waits until all lanes of the running thread's warp have called with the same `what` and detail. The last
// lane then calls compute() with the arguments of all lanes.
void all_lanes(const char* what, uint32_t detail, void* argument, void (*compute)(void* const* of_lanes));

// launch() calls these when a block begins and when a thread returns.
void begin_memory(uint32_t shared_bytes);
void begin_copies();
void begin_warps();
void begin_barriers(uint32_t shared_bytes);
void begin_wgmma();
void end_copies_of_thread();
void end_wgmma_of_thread();
void end_barriers_of_block();
// Lets one asynchronous copy arrive, if there is one. It is called when no thread can run, which is as late
// as possible.
bool deliver_one_late();

}  // namespace qcts::simt
