// SPDX-License-Identifier: BSD-3-Clause
// Runs the threads of a block: decides which thread goes on, and implements barriers and launches.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "kernels/emulated/simt.h"
#include "kernels/emulated/simt_checks.h"
#include "kernels/emulated/simt_fibers.h"

namespace qcts::simt {

Place place = {};

namespace {

constexpr const char* kAtBarrier = "sync_block()";

struct Fiber {
  const char* waits_for = nullptr;  // nullptr: the thread can run or has returned
  bool alive = false;
};

struct Block {
  Fiber fibers[kMaxThreads];
  uint16_t ready[kMaxThreads];  // a ring of the threads that can run
  uint32_t first_ready = 0, n_ready = 0, n_alive = 0, n_at_barrier = 0;
  void (*body)(void*) = nullptr;
  void* context = nullptr;
  Settings settings;
  uint64_t random = 0;
  bool runs = false;  // one of its threads runs
  bool failed = false;
  std::string fault;
};
// Fibers and their faults do not outlive a launch, but their memory is used again.
Block block;

void push_ready(uint32_t thread) {
  block.ready[(block.first_ready + block.n_ready++) % kMaxThreads] = static_cast<uint16_t>(thread);
}

// Returns the next thread in order, or a random one of those that can run.
uint32_t pop_ready() {
  if (block.settings.schedule.seed != 0) {
    const uint32_t chosen = (block.first_ready + random_below(block.n_ready)) % kMaxThreads;
    std::swap(block.ready[chosen], block.ready[block.first_ready]);
  }
  const uint32_t thread = block.ready[block.first_ready];
  block.first_ready = (block.first_ready + 1) % kMaxThreads;
  --block.n_ready;
  return thread;
}

// Sets the fault: "4 threads wait in sync_block() (the first: 0), 28 in a warp function (the first: 4)".
void describe_hang() {
  struct Group {
    const char* what;
    uint32_t count, first;
  };
  std::vector<Group> groups;
  for (uint32_t t = 0; t < place.threads; ++t) {
    if (!block.fibers[t].alive) continue;
    const char* what = block.fibers[t].waits_for;
    bool found = false;
    for (Group& group : groups)
      if (std::strcmp(group.what, what) == 0) ++group.count, found = true;
    if (!found) groups.push_back({what, 1, t});
  }
  block.fault = "hangs: ";
  for (const Group& group : groups) {
    if (&group != groups.data()) block.fault += ", ";
    block.fault += std::to_string(group.count) + (group.count == 1 ? " thread waits" : " threads wait") +
                   " in " + group.what + " (the first: " + std::to_string(group.first) + ")";
  }
  block.fault += ", and none can go on; block (" + std::to_string(place.block[0]) + "," +
                 std::to_string(place.block[1]) + "," + std::to_string(place.block[2]) + ")";
  block.failed = true;
}

[[noreturn]] void go_to_launcher() {
  switch_fibers(place.thread, kLauncher);
  __builtin_unreachable();
}

// Is called wherever a thread may lose the processor, because the stacks of other threads lie below its own.
void check_stack() {
  if (!stack_is_whole(place.thread)) fault("overflowed its stack of %zu bytes", kStackBytes);
}

void switch_to_next() {
  while (block.n_ready == 0 && block.n_alive > 0 && deliver_one_late()) {
  }
  if (block.n_ready == 0) {
    if (block.n_alive > 0)
      describe_hang();
    else
      end_barriers_of_block();
    go_to_launcher();
  }
  const uint32_t from = place.thread;
  place.thread = pop_ready();
  if (place.thread != from) switch_fibers(from, place.thread);
}

// Opens the barrier if all threads wait at it. It counts only the threads that have not returned, as a GPU's
// barrier does.
void open_barrier_if_full() {
  if (block.n_at_barrier == 0 || block.n_at_barrier < block.n_alive) return;
  block.n_at_barrier = 0;
  pass_block_barrier();
  for (uint32_t t = 0; t < place.threads; ++t)
    if (block.fibers[t].alive && block.fibers[t].waits_for == kAtBarrier) wake(t);
}

void run_thread() {
  enter_fiber();
  block.body(block.context);
  check_stack();
  end_copies_of_thread();
  end_wgmma_of_thread();
  block.fibers[place.thread].alive = false;
  --block.n_alive;
  open_barrier_if_full();
  switch_to_next();
  __builtin_unreachable();
}

void run_block(uint64_t number) {
  place.block[0] = static_cast<uint32_t>(number % place.grid[0]);
  place.block[1] = static_cast<uint32_t>(number / place.grid[0] % place.grid[1]);
  place.block[2] = static_cast<uint32_t>(number / place.grid[0] / place.grid[1]);
  block.first_ready = block.n_ready = block.n_at_barrier = 0;
  block.n_alive = place.threads;
  for (uint32_t t = 0; t < place.threads; ++t) {
    prepare_fiber(t, run_thread);
    block.fibers[t] = {nullptr, true};
    push_ready(t);
  }
  place.thread = pop_ready();
  block.runs = true;
  switch_fibers(kLauncher, place.thread);
  block.runs = false;
}

// Visits all blocks in an order that the seed chooses: block i * step + start, where `step` and the number of
// blocks have no common divisor.
void run_blocks(uint32_t shared_bytes) {
  const uint64_t count = static_cast<uint64_t>(place.grid[0]) * place.grid[1] * place.grid[2];
  uint64_t step = 1, start = 0;
  if (block.settings.schedule.seed != 0) {
    const auto below = static_cast<uint32_t>(count < 0xFFFFFFFF ? count : 0xFFFFFFFF);
    start = random_below(below);
    step = 1 + random_below(below);
    while (std::gcd(step, count) != 1) ++step;
  }
  begin_checks_of_launch();
  uint64_t number = start;
  for (uint64_t i = 0; i < count && !block.failed; ++i) {
    begin_memory(shared_bytes);
    begin_warps();
    begin_copies();
    begin_barriers(shared_bytes);
    begin_wgmma();
    begin_checks_of_block(shared_bytes);
    run_block(number);
    end_checks_of_block();
    number = (number + step) % count;
  }
}

}  // namespace

Schedule schedule(uint32_t number) {
  switch (number % kSchedules) {
    case 0:
      return {0, false};
    case 1:
      return {1, false};
    case 2:
      return {2, true};
    default:
      return {3, false};
  }
}

void configure(Settings given) {
  block.settings = std::move(given);
  clear_counts();
}
const Settings& settings() { return block.settings; }
bool is_running() { return block.runs; }

uint32_t random_below(uint32_t count) {  // splitmix64
  uint64_t z = block.random += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>(((z ^ z >> 31) >> 32) * count >> 32);
}

void fault(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  char where[96];
  std::snprintf(where, sizeof where, ", block (%u,%u,%u) thread %u", place.block[0], place.block[1],
                place.block[2], place.thread);
  block.fault = std::string(text) + where;
  block.failed = true;
  go_to_launcher();
}

void wait_for(const char* what) {
  check_stack();
  block.fibers[place.thread].waits_for = what;
  switch_to_next();
}

void wake(uint32_t thread) {
  block.fibers[thread].waits_for = nullptr;
  push_ready(thread);
}

void sync_block() {
  check_stack();
  ++block.n_at_barrier;
  block.fibers[place.thread].waits_for = kAtBarrier;
  open_barrier_if_full();
  switch_to_next();
}

const char* launch(const uint32_t (&grid)[3], uint32_t threads, uint32_t shared_bytes, void (*body)(void*),
                   void* context) {
  block.failed = false;
  block.body = body;
  block.context = context;
  block.random = block.settings.schedule.seed;
  std::memcpy(place.grid, grid, sizeof place.grid);
  place.threads = threads;
  const uint32_t most =
      block.settings.architecture == Architecture::ampere ? kAmpereSharedBytes : kMaxSharedBytes;
  if (shared_bytes > most) {
    block.fault = "asks for " + std::to_string(shared_bytes) + " bytes of shared memory: at most " +
                  std::to_string(most) + " are possible";
    block.failed = true;
  } else if (!make_stacks(threads)) {
    block.fault = "no memory for the stacks of " + std::to_string(threads) + " threads";
    block.failed = true;
  } else {
    run_blocks(shared_bytes);
  }
  return block.failed ? block.fault.c_str() : nullptr;
}

}  // namespace qcts::simt
