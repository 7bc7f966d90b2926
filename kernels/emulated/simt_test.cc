// SPDX-License-Identifier: BSD-3-Clause
// Tests the executor, which judges CUDA kernels where there is no GPU. Right kernels run the same under every
// schedule. Each planted fault is reported or changes the answer. An executor that is more lenient than a GPU
// would let a wrong kernel pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <vector>

#include "kernels/cuda/copies.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/launch.h"
#include "kernels/emulated/simt.h"

namespace qcts::executor_tests {
namespace {

using namespace qcts::device;
using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t kBlock = 64, kTiles = 5;

// The memory that a kernel of these tests reads and writes. x has kTiles tiles with a 16-byte word per
// thread. y has one word per thread.
struct Data {
  std::vector<uint32_t> x = std::vector<uint32_t>(kTiles * kBlock * 4), y = std::vector<uint32_t>(kBlock);
  Data() { std::iota(x.begin(), x.end(), 1u); }
};
struct View {
  const uint8_t* x;
  uint8_t* y;
};

simt::Settings settings_of(const Data& data, uint32_t schedule) {
  const auto* y = reinterpret_cast<const uint8_t*>(data.y.data());
  return {
      simt::schedule(schedule),
      simt::Architecture::ampere,
      {{"x", reinterpret_cast<const uint8_t*>(data.x.data()), 1, 4 * data.x.size(), 4 * data.x.size(), false},
       {"y", y, 1, 4 * data.y.size(), 4 * data.y.size(), true}}};
}

// Runs the kernel, in one block by default, and returns its fault. Returns "" if there is none.
std::string run_kernel(void (*kernel)(View), Data& data, uint32_t schedule, uint32_t shared_bytes = 4096,
                       int64_t blocks = 1) {
  simt::configure(settings_of(data, schedule));
  const View view = {reinterpret_cast<const uint8_t*>(data.x.data()),
                     reinterpret_cast<uint8_t*>(data.y.data())};
  const qcts_status status = launch(
      qcts_problem{}, {.blocks_x = blocks, .threads = kBlock, .shared_bytes = shared_bytes}, kernel, view);
  char why[1024] = "";
  if (status != QCTS_OK) last_failure(why, sizeof why);
  return why;
}

// A pipeline of two stages: each thread adds the words that its neighbour has fetched.

enum class Fault : uint8_t {
  none,
  waits_late,       // waits for one group less
  no_barrier,       // there is none between the wait and the reads
  no_loop_barrier,  // there is none between the reads and the next fetch
  too_far,          // fetches tiles that are not there
  no_commit,        // the last fetches are not committed
  no_last_wait,     // leaves while a copy is under way
  starts_at_end,    // the first tile is read from the end of x
  early_exit,       // half of the threads return before the last barriers
  reads_unfetched,  // reads a stage that nothing is fetched to
};

template <Fault kFault>
void pipeline(View data) {
  constexpr uint32_t kTileBytes = kBlock * 16;
  const uint32_t thread = thread_index();
  const auto fetch = [&](uint32_t tile) {
    if (tile < kTiles || kFault == Fault::too_far)
      copy_async<16>(shared_memory() + tile % 2 * kTileBytes + 16 * thread,
                     data.x + tile * kTileBytes + 16 * thread);
    if (kFault != Fault::no_commit || tile < kTiles - 1) commit_copies();
  };
  fetch(kFault == Fault::starts_at_end ? kTiles : 0);
  fetch(1);
  uint32_t sum = 0;
  for (uint32_t tile = 0; tile < kTiles; ++tile) {
    if (kFault == Fault::waits_late)
      wait_copies<2>();
    else if (kFault != Fault::no_last_wait || tile < kTiles - 1)
      wait_copies<1>();
    if (kFault == Fault::early_exit && tile == kTiles - 1 && thread >= kBlock / 2) return;
    if (kFault != Fault::no_barrier) sync_block();
    const uint32_t stage = kFault == Fault::reads_unfetched ? 2 : tile % 2;
    const auto words = load_shared<Words4>(shared_memory() + stage * kTileBytes + (thread + 1) % kBlock * 16);
    for (const uint32_t word : words.word) sum += word;
    if (kFault != Fault::no_loop_barrier) sync_block();
    fetch(tile + 2);
  }
  store_global(data.y + 4 * thread, sum);
}

std::vector<uint32_t> wanted_sums() {
  const Data data;
  std::vector<uint32_t> sums(kBlock);
  for (uint32_t t = 0; t < kBlock; ++t)
    for (uint32_t tile = 0; tile < kTiles; ++tile)
      for (uint32_t i = 0; i < 4; ++i) sums[t] += data.x[(tile * kBlock + (t + 1) % kBlock) * 4 + i];
  return sums;
}

TEST(Executor, RunsARightPipelineTheSameUnderEverySchedule) {
  for (uint32_t schedule = 0; schedule < 12; ++schedule) {
    Data data;
    EXPECT_EQ(run_kernel(pipeline<Fault::none>, data, schedule), "") << schedule;
    EXPECT_EQ(data.y, wanted_sums()) << schedule;
  }
}

struct PlantedFault {
  const char* name;
  void (*kernel)(View);
  const char* text;  // text of the fault; nullptr: only the answer shows it
};

class ExecutorPipeline : public testing::TestWithParam<PlantedFault> {};

// A determinism case runs these four schedules.
TEST_P(ExecutorPipeline, FaultIsFoundByOneOfFourSchedules) {
  std::string found;
  int wrong = 0;
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    Data data;
    const std::string text = run_kernel(GetParam().kernel, data, schedule);
    if (found.empty()) found = text;
    if (text.empty() && data.y != wanted_sums()) ++wrong;
  }
  if (GetParam().text == nullptr)
    EXPECT_GT(wrong, 0);
  else
    EXPECT_THAT(found, HasSubstr(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    Executor, ExecutorPipeline,
    testing::Values(PlantedFault{"waits_late", pipeline<Fault::waits_late>,
                                 "unfinished copies, which it did not wait for"},
                    PlantedFault{"no_barrier", pipeline<Fault::no_barrier>, nullptr},
                    PlantedFault{"no_loop_barrier", pipeline<Fault::no_loop_barrier>, nullptr},
                    PlantedFault{"reads_unfetched", pipeline<Fault::reads_unfetched>, nullptr},
                    PlantedFault{"too_far", pipeline<Fault::too_far>,
                                 "reads 16 bytes at x+5120, which is not in x (1 x 5120 bytes, 5120 apart), "
                                 "block (0,0,0) thread 0"},
                    PlantedFault{"starts_at_end", pipeline<Fault::starts_at_end>, nullptr},
                    PlantedFault{"no_commit", pipeline<Fault::no_commit>,
                                 "unfinished copies, which it did not commit"},
                    PlantedFault{"no_last_wait", pipeline<Fault::no_last_wait>,
                                 "unfinished copies, which it did not wait for"},
                    PlantedFault{"early_exit", pipeline<Fault::early_exit>, nullptr}),
    [](const auto& info) { return info.param.name; });

// Faults of one access or call.

void past_the_end(View data) {
  load_global<uint32_t>(data.x + kTiles * kBlock * 16 + 4 * (thread_index() % 2) - 4);
}
void before_the_start(View data) { load_global<uint16_t>(data.x - 2 * (thread_index() == 5 ? 1 : -1)); }
void misaligned(View data) { load_global<Words4>(data.x + (thread_index() == 7 ? 8 : 0)); }
void writes_input(View data) { store_global(const_cast<uint8_t*>(data.x), uint8_t{1}); }
void straddles_end(View data) {
  store_global(data.y + 4 * kBlock - 8 * (thread_index() == 3 ? 0 : 1), Words2{});
}
void shared_past_end(View) {
  store_shared(shared_memory() + 4096 - (thread_index() == 9 ? 0 : 4), uint32_t{1});
}
void global_as_shared(View data) { load_shared<uint32_t>(data.x + 4); }
void shared_as_global(View) { load_global<uint32_t>(shared_memory() + 8); }
void nowhere(View) { load_global<uint32_t>(reinterpret_cast<const void*>(16)); }
void copies_misaligned(View data) { copy_async<16>(shared_memory(), data.x + 4); }
void other_mask(View) {
  if (thread_index() == 0)
    sync_warp(0x00000003);
  else
    sync_warp(0xFFFFFFFF);
}
void mask_of_those_who_returned(View) {
  if (thread_index() % 2 == 0)
    sync_warp(0x55555555);
  else
    sync_warp(0xFFFFFFFF);
}
void mask_without_itself(View) { sync_warp(thread_index() == 1 ? 0xFFFFFFFD : 0xFFFFFFFF); }
void other_function(View) {
  if (thread_index() < 16)
    sync_warp();
  else
    ballot(true);
}
void reads_absent_lane(View) {
  if (thread_index() < 8) shuffle(1, 8, 0xFF);
}
void waits_for_returned(View) {
  if (thread_index() != 2) sync_warp();
}
void waits_for_different_things(View) {
  if (thread_index() < 48)
    sync_block();
  else if (thread_index() < 56)
    sync_warp();
}
void overflows_stack(View data) {
  volatile uint8_t much[80 << 10];
  for (size_t i = sizeof much; i-- > 0;) much[i] = data.x[0];
}

class ExecutorFault : public testing::TestWithParam<PlantedFault> {};

TEST_P(ExecutorFault, IsNamedUnderEverySchedule) {
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    Data data;
    EXPECT_THAT(run_kernel(GetParam().kernel, data, schedule), HasSubstr(GetParam().text)) << schedule;
  }
  Data data;
  EXPECT_EQ(run_kernel(pipeline<Fault::none>, data, 1), "") << "the next launch";
  EXPECT_EQ(data.y, wanted_sums());
}

INSTANTIATE_TEST_SUITE_P(
    Executor, ExecutorFault,
    testing::Values(
        PlantedFault{"past_the_end", past_the_end, "reads 4 bytes at x+5120, which is not in x"},
        PlantedFault{"before_the_start", before_the_start, "reads 2 bytes at x-2, which is not in x"},
        PlantedFault{"misaligned", misaligned,
                     "reads 16 bytes at x+8, which is not a multiple of 16, block (0,0,0) thread 7"},
        PlantedFault{"writes_input", writes_input, "writes x+0, which is an input"},
        PlantedFault{"straddles_end", straddles_end, "writes 8 bytes at y+256, which is not in y"},
        PlantedFault{
            "shared_past_end", shared_past_end,
            "writes 4 bytes at shared memory+4096: the block has 4096 bytes, block (0,0,0) thread 9"},
        PlantedFault{"global_as_shared", global_as_shared, "reads x+4 as shared memory"},
        PlantedFault{"shared_as_global", shared_as_global, "reads shared memory+8 as global memory"},
        PlantedFault{"nowhere", nowhere, "reads 4 bytes at address 0x10"},
        PlantedFault{"copies_misaligned", copies_misaligned,
                     "reads 16 bytes at x+4, which is not a multiple of 16"},
        PlantedFault{"other_mask", other_mask, "with mask"},
        PlantedFault{"mask_of_those_who_returned", mask_of_those_who_returned, "hangs: "},
        PlantedFault{"mask_without_itself", mask_without_itself,
                     "which lacks its lane, block (0,0,0) thread 1"},
        PlantedFault{"other_function", other_function, "of its warp wait in"},
        PlantedFault{"reads_absent_lane", reads_absent_lane,
                     "reads lane 8, which is not in the mask 0x000000ff"},
        PlantedFault{"waits_for_returned", waits_for_returned,
                     "hangs: 31 threads wait in sync_warp() (the first: 0)"},
        PlantedFault{"waits_for_different_things", waits_for_different_things,
                     "hangs: 48 threads wait in sync_block()"},
        PlantedFault{"overflows_stack", overflows_stack, "stack"}),
    [](const auto& info) { return info.param.name; });

// A store of two elements at the last element of a row writes into the next row or into the gap.
TEST(Executor, KnowsTheGapsBetweenRows) {
  alignas(16) uint8_t bytes[3 * 16] = {};
  simt::configure({{}, simt::Architecture::ampere, {{"y", bytes, 3, 12, 16, true}}});
  const auto store_at = [&](int offset, auto value) {
    static int at;
    at = offset;
    static uint8_t* first;
    first = bytes;
    static decltype(value) kept;
    kept = value;
    return launch(qcts_problem{}, {.blocks_x = 1, .threads = 32},
                  static_cast<void (*)(int)>([](int) { store_global(first + at, kept); }), 0);
  };
  EXPECT_EQ(store_at(24, uint32_t{1}), QCTS_OK) << "the last element of the second row";
  EXPECT_EQ(store_at(8, uint64_t{1}), QCTS_FAILED);
  char why[256];
  last_failure(why, sizeof why);
  EXPECT_THAT(why, HasSubstr("writes 8 bytes at y+8, which is not in y (3 x 12 bytes, 16 apart)"));
  EXPECT_EQ(store_at(12, uint32_t{1}), QCTS_FAILED) << "in the gap";
  EXPECT_EQ(store_at(40, uint32_t{1}), QCTS_OK);
  EXPECT_EQ(store_at(44, uint32_t{1}), QCTS_FAILED) << "after the last row";
}

struct RefusedLaunch {
  const char* name;
  Launch at;
  const char* text;
};
class ExecutorLaunch : public testing::TestWithParam<RefusedLaunch> {};

TEST_P(ExecutorLaunch, IsRefusedAsByAGpu) {
  simt::configure({});
  const auto kernel = static_cast<void (*)(int)>([](int) { ADD_FAILURE() << "was started"; });
  EXPECT_EQ(launch(qcts_problem{}, GetParam().at, kernel, 0), QCTS_FAILED);
  char why[256];
  last_failure(why, sizeof why);
  EXPECT_THAT(why, HasSubstr(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    Executor, ExecutorLaunch,
    testing::Values(RefusedLaunch{"no_block", {.blocks_x = 0, .threads = 32}, "a grid of 0 blocks in x"},
                    RefusedLaunch{"grid_y",
                                  {.blocks_x = 1, .blocks_y = 65536, .threads = 32},
                                  "a grid of 65536 blocks in y: 1 to 65535"},
                    RefusedLaunch{"grid_z", {.blocks_x = 1, .blocks_z = 65536, .threads = 32}, "blocks in z"},
                    RefusedLaunch{"grid_x", {.blocks_x = int64_t{1} << 31, .threads = 32}, "blocks in x"},
                    RefusedLaunch{"threads", {.blocks_x = 1, .threads = 1056}, "a block of 1056 threads"},
                    RefusedLaunch{"half_warp", {.blocks_x = 1, .threads = 48}, "whole warps"},
                    RefusedLaunch{"shared",
                                  {.blocks_x = 1, .threads = 32, .shared_bytes = (99 << 10) + 16},
                                  "asks for 101392 bytes of shared memory: at most 101376"}),
    [](const auto& info) { return info.param.name; });

void marks_block(View data) {
  const uint32_t block = block_x();
  if (thread_index() == 0) store_global(data.y + 4 * block, load_written<uint32_t>(data.y + 4 * block) + 1);
}

TEST(Executor, RunsEachBlockOnce) {
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule)
    for (const int64_t blocks : {1, 2, 48, 63, 64}) {
      Data data;
      EXPECT_EQ(run_kernel(marks_block, data, schedule, 0, blocks), "");
      for (int64_t b = 0; b < std::ssize(data.y); ++b)
        EXPECT_EQ(data.y[static_cast<size_t>(b)], b < blocks ? 1u : 0u)
            << blocks << ", schedule " << schedule;
    }
}

void exchanges(View data) {
  const uint32_t thread = thread_index(), lane = lane_index();
  const uint32_t odd = ballot(lane % 2 == 1);
  uint32_t sum = shuffle_xor(thread, 1) + shuffle(thread, 31 - lane);
  if (lane < 16) sum += shuffle_xor(100u, 3, 0xFFFF);  // half a warp
  store_global(data.y + 4 * thread, sum + (odd == 0xAAAAAAAA ? 1000 : 0));
}

TEST(Executor, ExchangesWithinAWarp) {
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    Data data;
    EXPECT_EQ(run_kernel(exchanges, data, schedule), "");
    for (uint32_t t = 0; t < kBlock; ++t)
      EXPECT_EQ(data.y[t], (t ^ 1) + (t / 32 * 32 + 31 - t % 32) + (t % 32 < 16 ? 100 : 0) + 1000) << t;
  }
}

// Lanes that have left their group's shuffle wait for all lanes while lanes of the other group are still to
// come.
void joins_after_groups(View data) {
  const uint32_t thread = thread_index(), lane = lane_index(),
                 group = lane % 3 == 0 ? 0x49249249 : ~0x49249249u;
  uint32_t sum = 0;
  for (uint32_t round = 0; round < 4; ++round) {
    const uint32_t first = lane % 3 == 0 ? 0 : 1;
    if (lane % 3 == 0)
      sum += shuffle(thread, first, group);
    else
      sum += shuffle(thread, first, group) + (ballot(true, group) == group ? 100 : 0);
    sync_warp();
    sum += shuffle_xor(round, 1);
  }
  store_global(data.y + 4 * thread, sum);
}

TEST(Executor, LetsAGroupWaitForAllWhileAnotherComes) {
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    Data data;
    EXPECT_EQ(run_kernel(joins_after_groups, data, schedule), "");
    for (uint32_t t = 0; t < kBlock; ++t)
      EXPECT_EQ(data.y[t], 4 * (t / 32 * 32) + 6 + (t % 32 % 3 == 0 ? 0 : 404)) << t;
  }
}

// A race between threads shows only if their order differs between schedules.
TEST(Executor, OrdersThreadsByTheSchedule) {
  const auto kernel = [](View data) {
    const uint32_t turn = load_written<uint32_t>(data.y);
    store_global(data.y, turn + 1);
    if (turn > 0) store_global(data.y + 4 * turn, thread_index());
  };
  std::vector<std::vector<uint32_t>> orders;
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    Data data;
    EXPECT_EQ(run_kernel(kernel, data, schedule), "");
    orders.push_back(data.y);
  }
  for (uint32_t t = 1; t < kBlock; ++t) EXPECT_EQ(orders[0][t], t) << "schedule 0 keeps the order";
  EXPECT_NE(orders[1], orders[0]);
  EXPECT_NE(orders[3], orders[1]);
}

}  // namespace
}  // namespace qcts::executor_tests
