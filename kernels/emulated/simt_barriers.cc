// SPDX-License-Identifier: BSD-3-Clause
// Barriers in shared memory, copies of boxes, and the fence between ordinary stores and instructions that
// read in another way.
#include <algorithm>
#include <cstring>

#include "kernels/cuda/tensor_map.h"
#include "kernels/emulated/simt.h"
#include "kernels/emulated/simt_checks.h"

namespace qcts::simt {
namespace {

struct Barrier {
  uint64_t* at;
  uint32_t arrivals;    // arrivals that complete a phase
  uint32_t maker;       // the thread that made it
  bool fenced = false;  // its maker has called fence_barriers()
  int64_t missing = 0;  // arrivals of this phase that are still to come
  int64_t bytes = 0;    // bytes that are expected, minus those that have come
  uint32_t phase = 0;
  std::vector<uint32_t> waiting = {};  // threads
};

struct BoxCopy {
  uint8_t* to;
  TensorShape shape;
  int32_t column, row;
  uint64_t* barrier;
};

struct Async {
  std::vector<Barrier> barriers;
  std::vector<BoxCopy> copies;  // under way
  // `thread` is the thread that last wrote a word of shared memory with an ordinary store, plus 1. `fences`
  // counts that thread's fences until then.
  struct Writer {
    uint16_t thread, fences;
  };
  std::vector<Writer> writers;
  uint16_t fences[kMaxThreads];
};
Async async;

Barrier& barrier_at(uint64_t* at, const char* what) {
  for (Barrier& barrier : async.barriers)
    if (barrier.at == at) return barrier;
  fault("%s shared memory+%td, where no barrier was made", what,
        reinterpret_cast<uint8_t*>(at) - shared_memory());
}

void end_phase_if_complete(Barrier& barrier) {
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.missing = barrier.arrivals;
  for (const uint32_t thread : barrier.waiting) wake(thread);
  barrier.waiting.clear();
}

uint32_t bytes_of(const BoxCopy& copy) { return copy.shape.box_rows * kBoxRowBytes; }

// Writes the box. The 16-byte units of a row of 128 bytes are stored at their number exclusive-or the row's
// number (address bits 7 to 9).
void deliver(const BoxCopy& copy) {
  const TensorShape& s = copy.shape;
  for (uint32_t r = 0; r < s.box_rows; ++r)
    for (uint32_t unit = 0; unit < kBoxRowBytes / 16; ++unit) {
      uint8_t* to = copy.to + r * kBoxRowBytes + ((unit ^ (r % 8)) * 16);
      std::memset(to, 0, 16);
      const int64_t row = int64_t{copy.row} + r;
      if (row < 0 || row >= s.rows) continue;
      const auto* from = global_place(static_cast<const uint8_t*>(s.first)) + row * s.stride_bytes;
      for (uint32_t i = 0; i < 16 / s.element_bytes; ++i) {
        const int64_t column = int64_t{copy.column} + (unit * 16) / s.element_bytes + i;
        if (column < 0 || column >= s.columns) continue;
        std::memcpy(to + i * s.element_bytes, from + column * s.element_bytes, s.element_bytes);
      }
    }
  Barrier& barrier = barrier_at(copy.barrier, "a box completes at");
  barrier.bytes -= bytes_of(copy);
  end_phase_if_complete(barrier);
}

}  // namespace

void begin_barriers(uint32_t shared_bytes) {
  async.barriers.clear();
  async.copies.clear();
  if (settings().architecture == Architecture::ampere) return;
  async.writers.assign((shared_bytes + 3) / 4, {});
  std::memset(async.fences, 0, sizeof async.fences);
}

bool deliver_one_late() {
  if (async.copies.empty()) return false;
  const auto chosen = async.copies.begin() + random_below(static_cast<uint32_t>(async.copies.size()));
  const BoxCopy copy = *chosen;
  async.copies.erase(chosen);
  deliver(copy);
  return true;
}

void end_barriers_of_block() {
  if (!async.copies.empty())
    fault("the block ends while %zu boxes are under way, the first to shared memory+%td", async.copies.size(),
          async.copies[0].to - shared_memory());
}

void note_shared_store(const void* at, uint32_t bytes) {
  if (settings().architecture == Architecture::ampere) return;
  const auto first = static_cast<size_t>(static_cast<const uint8_t*>(at) - shared_memory());
  for (size_t word = first / 4; word <= (first + bytes - 1) / 4; ++word)
    async.writers[word] = {static_cast<uint16_t>(place.thread + 1), async.fences[place.thread]};
}

void check_fenced(const void* at, uint32_t bytes, const char* what) {
  const auto first = static_cast<size_t>(static_cast<const uint8_t*>(at) - shared_memory());
  for (size_t word = first / 4; word <= (first + bytes - 1) / 4; ++word) {
    const Async::Writer writer = async.writers[word];
    if (writer.thread != 0 && async.fences[writer.thread - 1] == writer.fences)
      fault("%s shared memory+%zu, which thread %u wrote and did not show by fence_async()", what, 4 * word,
            writer.thread - 1u);
  }
}

void make_barrier(uint64_t* at, uint32_t arrivals) {
  check_access(Space::shared, at, 8, Use::write);
  stop_race_checks_of_block();
  if (arrivals == 0) fault("makes a barrier for no arrivals");
  std::erase_if(async.barriers, [at](const Barrier& barrier) { return barrier.at == at; });
  async.barriers.push_back({.at = at, .arrivals = arrivals, .maker = place.thread, .missing = arrivals});
}

void fence_barriers() {
  for (Barrier& barrier : async.barriers)
    if (barrier.maker == place.thread) barrier.fenced = true;
}

void fence_async() { ++async.fences[place.thread]; }

void arrive(uint64_t* at, uint32_t expected_bytes) {
  Barrier& barrier = barrier_at(at, "arrives at");
  if (barrier.missing == 0)
    fault("arrives at the barrier shared memory+%td, which has all its %u arrivals of this phase",
          reinterpret_cast<uint8_t*>(at) - shared_memory(), barrier.arrivals);
  --barrier.missing;
  barrier.bytes += expected_bytes;
  end_phase_if_complete(barrier);
}

void wait_barrier(uint64_t* at, uint32_t parity) {
  while (barrier_at(at, "waits at").phase % 2 == parity) {
    barrier_at(at, "waits at").waiting.push_back(place.thread);
    wait_for("wait_barrier()");
  }
}

void copy_box(void* shared, const TensorMap& map, int32_t column, int32_t row, uint64_t* barrier) {
  BoxCopy copy = {static_cast<uint8_t*>(shared), {}, column, row, barrier};
  std::memcpy(&copy.shape, map.opaque, sizeof copy.shape);
  constexpr uint32_t kAlignment = 1024;
  if ((copy.to - shared_memory()) % kAlignment != 0)
    fault("copies a box to shared memory+%td, which is not a multiple of %u", copy.to - shared_memory(),
          kAlignment);
  if (int64_t{column} * copy.shape.element_bytes % 16 != 0)
    fault("copies a box from column %d of elements of %u bytes, which is not at a multiple of 16 bytes",
          column, copy.shape.element_bytes);
  check_range(Space::shared, copy.to, bytes_of(copy), Use::write);
  const auto* first = static_cast<const uint8_t*>(copy.shape.first);
  for (const int64_t end : {int64_t{0}, copy.shape.rows - 1})
    check_range(Space::global, first + end * copy.shape.stride_bytes,
                static_cast<uint32_t>(copy.shape.columns * copy.shape.element_bytes), Use::read);
  if (!barrier_at(barrier, "a box would complete at").fenced)
    fault("copies a box to the barrier shared memory+%td, which its maker did not show by fence_barriers()",
          reinterpret_cast<uint8_t*>(barrier) - shared_memory());
  check_fenced(copy.to, bytes_of(copy), "a box would overwrite");
  note_access(Space::shared, copy.to, bytes_of(copy), Use::write, Kind::asynchronous, nullptr);
  if (settings().schedule.early) return deliver(copy);
  std::memset(copy.to, 0xFF, bytes_of(copy));
  async.copies.push_back(copy);
}

}  // namespace qcts::simt
