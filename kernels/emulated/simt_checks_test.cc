// SPDX-License-Identifier: BSD-3-Clause
// Tests the executor's checks (simt_checks.h). They report races and unwritten shared memory, but no ordered
// accesses. They count the sectors and bank turns of a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda/copies.h"
#include "kernels/cuda/launch.h"
#include "kernels/emulated/simt_checks.h"

namespace qcts::check_tests {
namespace {

using namespace qcts::device;
using testing::HasSubstr;

constexpr uint32_t kThreads = 64, kWords = 1024;

struct Arrays {
  const uint32_t* x;  // kWords
  uint32_t* y;        // kWords
};

std::string run_checked(void (*kernel)(Arrays), uint32_t schedule, int64_t blocks = 1) {
  alignas(128) static uint32_t x[kWords], y[kWords];
  simt::configure({simt::schedule(schedule),
                   simt::Architecture::ampere,
                   {{"x", reinterpret_cast<const uint8_t*>(x), 1, sizeof x, sizeof x, false},
                    {"y", reinterpret_cast<const uint8_t*>(y), 1, sizeof y, sizeof y, true}},
                   true,
                   true});
  char why[1024] = "";
  if (launch(qcts_problem{}, {.blocks_x = blocks, .threads = kThreads, .shared_bytes = 4096}, kernel,
             Arrays{x, y}) != QCTS_OK)
    last_failure(why, sizeof why);
  return why;
}

uint32_t* shared_word(uint32_t at) { return reinterpret_cast<uint32_t*>(shared_memory()) + at; }

void reads_unwritten(Arrays) { load_shared<uint32_t>(shared_word(thread_index())); }
void no_barrier(Arrays) {
  store_shared(shared_word(thread_index()), thread_index());
  load_shared<uint32_t>(shared_word((thread_index() + 1) % kThreads));
}
void with_barrier(Arrays) {
  store_shared(shared_word(thread_index()), thread_index());
  sync_block();
  load_shared<uint32_t>(shared_word((thread_index() + 1) % kThreads));
}
void no_barrier_before_overwriting(Arrays a) {
  with_barrier(a);
  store_shared(shared_word(thread_index()), 1u);
}
void no_warp_barrier(Arrays) {
  store_shared(shared_word(thread_index()), thread_index());
  ballot(true);  // orders no memory
  load_shared<uint32_t>(shared_word(thread_index() ^ 1));
}
void with_warp_barrier(Arrays) {
  store_shared(shared_word(thread_index()), thread_index());
  sync_warp();
  load_shared<uint32_t>(shared_word(thread_index() ^ 1));
  sync_warp();
  store_shared(shared_word(thread_index()), 1u);
}
void no_warp_barrier_before_overwriting(Arrays) {
  store_shared(shared_word(thread_index()), thread_index());
  sync_warp();
  load_shared<uint32_t>(shared_word(thread_index() ^ 1));
  store_shared(shared_word(thread_index()), 1u);
}
void warp_barrier_between_warps(Arrays) {
  store_shared(shared_word(thread_index()), thread_index());
  sync_warp();
  load_shared<uint32_t>(shared_word(thread_index() ^ 32));
}
void all_write_one_word(Arrays) { store_shared(shared_word(0), 1u); }
void all_read_then_one_writes(Arrays) {
  if (thread_index() == 0) store_shared(shared_word(0), 1u);
  sync_block();
  load_shared<uint32_t>(shared_word(0));
  if (thread_index() == 0) store_shared(shared_word(0), 2u);
}
void all_read_and_wait(Arrays a) {
  if (thread_index() == 0) store_shared(shared_word(0), 1u);
  sync_block();
  load_shared<uint32_t>(shared_word(0));
  sync_block();
  if (thread_index() == 0) store_shared(shared_word(0), 2u);
  store_global(a.y + thread_index(), 0u);
}
void reads_during_copy(Arrays a) {
  copy_async<16>(shared_word(4 * thread_index()), a.x + 4 * thread_index());
  commit_copies();
  load_shared<uint32_t>(shared_word(4 * thread_index()));
  wait_copies<0>();
}
void reads_copy_of_other_thread(Arrays a) {
  copy_async<16>(shared_word(4 * thread_index()), a.x + 4 * thread_index());
  commit_copies();
  wait_copies<0>();
  load_shared<uint32_t>(shared_word(4 * (thread_index() ^ 32)));
}
void reads_copy_after_barrier(Arrays a) {
  copy_async<16>(shared_word(4 * thread_index()), a.x + 4 * thread_index());
  commit_copies();
  wait_copies<0>();
  sync_block();
  load_shared<uint32_t>(shared_word(4 * (thread_index() ^ 32)));
}
void blocks_write_one_word(Arrays a) {
  if (thread_index() == 0) store_global(a.y, block_x());
}
void blocks_read_what_others_write(Arrays a) {
  if (thread_index() == 0) store_global(a.y + block_x(), load_written<uint32_t>(a.y + (block_x() ^ 1)));
}
void blocks_use_atomics(Arrays a) { atomic_max(a.y, thread_index()); }
void threads_write_one_global_word(Arrays a) { store_global(a.y + thread_index() % 32, 1u); }

struct Checked {
  const char* name;
  void (*kernel)(Arrays);
  const char* text;  // text of the fault; nullptr: there is none
  int64_t blocks = 1;
};
class ExecutorChecks : public testing::TestWithParam<Checked> {};

// A race must be found in every order of the threads: the schedules that a GPU happens to take must not hide
// it.
TEST_P(ExecutorChecks, NameRacesUnderEverySchedule) {
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    const std::string text = run_checked(GetParam().kernel, schedule, GetParam().blocks);
    if (GetParam().text == nullptr)
      EXPECT_EQ(text, "") << schedule;
    else
      EXPECT_THAT(text, HasSubstr(GetParam().text)) << schedule;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Executor, ExecutorChecks,
    testing::Values(
        Checked{"reads_unwritten", reads_unwritten, "which nothing wrote"},
        Checked{"no_barrier", no_barrier, "shared memory+"}, Checked{"with_barrier", with_barrier, nullptr},
        Checked{"no_barrier_before_overwriting", no_barrier_before_overwriting, "race: "},
        Checked{"no_warp_barrier", no_warp_barrier, "race: reads shared memory+"},
        Checked{"with_warp_barrier", with_warp_barrier, nullptr},
        Checked{"no_warp_barrier_before_overwriting", no_warp_barrier_before_overwriting, "race: "},
        Checked{"warp_barrier_between_warps", warp_barrier_between_warps, "shared memory+"},
        Checked{"all_write_one_word", all_write_one_word, "race: writes shared memory+0"},
        Checked{"all_read_then_one_writes", all_read_then_one_writes, "race: "},
        Checked{"all_read_and_wait", all_read_and_wait, nullptr},
        Checked{"reads_during_copy", reads_during_copy, "while a copy to it is under way"},
        Checked{"reads_copy_of_other_thread", reads_copy_of_other_thread, "shared memory+"},
        Checked{"reads_copy_after_barrier", reads_copy_after_barrier, nullptr},
        Checked{"blocks_write_one_word", blocks_write_one_word, "race: writes y+0, which block", 2},
        Checked{"blocks_read_what_others_write", blocks_read_what_others_write, "race: reads y+", 4},
        Checked{"blocks_use_atomics", blocks_use_atomics, nullptr, 3},
        Checked{"threads_write_one_global_word", threads_write_one_global_word, "race: writes y+"}),
    [](const auto& info) { return info.param.name; });

// Counts: 64 threads are two warps.

template <uint32_t kStride>
void reads_words(Arrays a) {
  load_global<uint32_t>(a.x + kStride * thread_index());
}
void reads_one_word(Arrays a) { load_global<uint32_t>(a.x); }
void reads_units(Arrays a) { load_global<Words4>(a.x + 4 * thread_index()); }
void reads_twice(Arrays a) {
  for (uint32_t i = 0; i < 2; ++i) load_global<uint32_t>(a.x + kThreads * i + thread_index());
}
void writes_halves(Arrays a) {
  store_global(reinterpret_cast<uint16_t*>(a.y) + 2 * thread_index(), uint16_t{1});
}
template <uint32_t kStride>
void writes_shared_words(Arrays) {
  store_shared(shared_word(kStride * thread_index() % kWords), 1u);
}
void writes_shared_units(Arrays) { store_shared(shared_word(4 * thread_index()), Words4{}); }
void writes_shared_units_apart(Arrays) { store_shared(shared_word(16 * thread_index()), Words4{}); }

TEST(ExecutorCounts, AreThoseOfAGpu) {
  struct {
    const char* name;
    void (*kernel)(Arrays);
    std::vector<uint64_t> wanted;  // sectors read, ideal, written, ideal; turns, ideal
  } const cases[] = {{"neighbours", reads_words<1>, {8, 8, 0, 0, 0, 0}},
                     {"every other word", reads_words<2>, {16, 8, 0, 0, 0, 0}},
                     {"a sector each", reads_words<8>, {64, 8, 0, 0, 0, 0}},
                     {"one word", reads_one_word, {2, 2, 0, 0, 0, 0}},
                     {"16 bytes each", reads_units, {32, 32, 0, 0, 0, 0}},
                     {"a loop", reads_twice, {16, 16, 0, 0, 0, 0}},
                     {"every other half word", writes_halves, {0, 0, 8, 4, 0, 0}},
                     {"banks in order", writes_shared_words<1>, {0, 0, 0, 0, 2, 2}},
                     {"two words a bank", writes_shared_words<2>, {0, 0, 0, 0, 4, 2}},
                     {"16 bytes, four parts", writes_shared_units, {0, 0, 0, 0, 8, 8}},
                     {"16 bytes, four to a bank", writes_shared_units_apart, {0, 0, 0, 0, 32, 8}}};
  for (const auto& each : cases) {
    EXPECT_EQ(run_checked(each.kernel, 1), "") << each.name;
    const simt::AccessCounts c = simt::access_counts();
    EXPECT_THAT((std::vector<uint64_t>{c.sectors_read, c.ideal_sectors_read, c.sectors_written,
                                       c.ideal_sectors_written, c.turns, c.ideal_turns}),
                testing::ContainerEq(each.wanted))
        << each.name;
  }
}

// Kernels of the checked library are compiled with -fsanitize=thread, which finds such accesses.
TEST(ExecutorChecks, NameAccessesThatBypassDeviceH) {
  const auto kernel = [](Arrays a) { simt::note_bare_access(a.x + 6, 4, simt::Use::read); };
  EXPECT_THAT(run_checked(kernel, 0), HasSubstr("reads 4 bytes at x+24 other than through device.h"));
  const auto shared = [](Arrays) { simt::note_bare_access(shared_memory() + 8, 4, simt::Use::write); };
  EXPECT_THAT(run_checked(shared, 0),
              HasSubstr("writes 4 bytes at shared memory+8 other than through device.h"));
  const auto own = [](Arrays) {
    uint32_t word = 0;
    simt::note_bare_access(&word, 4, simt::Use::write);
  };
  EXPECT_EQ(run_checked(own, 0), "");
}

}  // namespace
}  // namespace qcts::check_tests
