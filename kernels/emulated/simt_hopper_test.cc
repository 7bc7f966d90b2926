// SPDX-License-Identifier: BSD-3-Clause
// Tests barriers, copies of boxes and wgmma in the executor. The pipeline is that of kernels for compute
// capability 9.0: one warp fetches, and four multiply. Each planted fault is reported or changes the answer
// under one of four schedules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/wgmma.h"
#include "kernels/emulated/simt.h"

namespace qcts::hopper_tests {
namespace {

using namespace qcts::device;
using testing::AllOf;
using testing::HasSubstr;

// a is [kRows, kLength] bytes and b is [kColumns, kLength] bytes. A stage has kBoxRowBytes of each row.
constexpr uint32_t kRows = 64, kColumns = 16, kStages = 2, kSteps = 5, kLength = kSteps * kBoxRowBytes;
constexpr uint32_t kABytes = kRows * kBoxRowBytes, kBBytes = kColumns * kBoxRowBytes,
                   kStageBytes = kABytes + kBBytes;
constexpr uint32_t kConsumers = 128, kThreads = kConsumers + 32, kSharedBytes = kStages * kStageBytes + 1024;

enum class Planted : uint8_t {
  none,
  no_wait_for_slot,   // the fetching warp overwrites a slot that is in use
  half_the_bytes,     // only half of the bytes are expected
  no_wait_for_bytes,  // the consumers do not wait
  released_early,     // the stage is released before wgmma has read it (NVIDIA/Fuser#3561)
  read_early,         // accumulators are read before they are waited for
  touched_early,
  no_wgmma_fence,
  no_barrier_fence,
  no_wgmma_commit,
  column_not_advanced,  // pytorch#186241
  wrong_parity,
  too_many_arrivals,
  box_misplaced,    // at a wrong address in shared memory
  last_box_unused,  // it is fetched and never waited for
};

struct Maps {
  TensorMap a, b;
  float* d;  // [kRows, kColumns]
};

template <Planted kFault>
void fetch(const Maps& maps, uint64_t* full, uint64_t* empty) {
  if (thread_index() != kConsumers) return;
  for (uint32_t step = 0; step < kSteps + (kFault == Planted::last_box_unused ? 1 : 0); ++step) {
    const uint32_t stage = step % kStages, round = step / kStages;
    if (round > 0 && kFault != Planted::no_wait_for_slot) wait_barrier(empty + stage, (round - 1) % 2);
    uint8_t* to = shared_memory() + stage * kStageBytes;
    const auto column =
        static_cast<int32_t>(kFault == Planted::column_not_advanced ? 0 : step * kBoxRowBytes);
    arrive_expecting(full + stage, kFault == Planted::half_the_bytes ? kABytes : kStageBytes);
    copy_box(to, &maps.a, column, 0, full + stage);
    copy_box(to + kABytes + (kFault == Planted::box_misplaced ? 64 : 0), &maps.b, column, 0, full + stage);
  }
}

template <Planted kFault>
void multiply(const Maps& maps, uint64_t* full, uint64_t* empty) {
  float sums[kColumns / 2] = {}, early[kColumns / 2];
  for (uint32_t step = 0; step < kSteps; ++step) {
    const uint32_t stage = step % kStages, round = step / kStages;
    if (kFault != Planted::no_wait_for_bytes)
      wait_barrier(full + stage, (round + (kFault == Planted::wrong_parity ? 1 : 0)) % 2);
    const uint64_t a = matrix_descriptor(shared_memory() + stage * kStageBytes),
                   b = matrix_descriptor(shared_memory() + stage * kStageBytes + kABytes);
    if (kFault != Planted::no_wgmma_fence) wgmma_fence();
    for (uint32_t at = 0; at < kBoxRowBytes / 32; ++at) wgmma_e4m3(sums, a + 2 * at, b + 2 * at);
    if (kFault != Planted::no_wgmma_commit) wgmma_commit();
    if (kFault == Planted::released_early && lane_index() == 0) arrive(empty + stage);
    if (kFault == Planted::touched_early)
      for (float& sum : sums) sum += 0;
    if (kFault == Planted::read_early)
      for (uint32_t i = 0; i < kColumns / 2; ++i) early[i] = sums[i];
    wgmma_wait<0>();
    for (uint32_t i = 0; i < kColumns / 2 && kFault == Planted::read_early; ++i) sums[i] = early[i];
    const uint32_t arrivals = kFault == Planted::too_many_arrivals ? 2 : 1;
    for (uint32_t i = 0; i < arrivals && kFault != Planted::released_early; ++i)
      if (lane_index() == 0) arrive(empty + stage);
  }
  const uint32_t row = warp_index() * 16 + lane_index() / 4, column = lane_index() % 4 * 2;
  for (uint32_t i = 0; i < kColumns / 2; ++i)
    store_global(maps.d + (row + i / 2 % 2 * 8) * kColumns + i / 4 * 8 + column + i % 2, bits_of(sums[i]));
}

template <Planted kFault>
void pipeline(const Maps maps) {
  auto* full = reinterpret_cast<uint64_t*>(shared_memory() + kStages * kStageBytes);
  uint64_t* empty = full + kStages;
  if (thread_index() == 0) {
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      make_barrier(full + stage, 1);
      make_barrier(empty + stage, kConsumers / 32);
    }
    if (kFault != Planted::no_barrier_fence) fence_barriers();
  }
  sync_block();
  if (thread_index() >= kConsumers)
    fetch<kFault>(maps, full, empty);
  else
    multiply<kFault>(maps, full, empty);
}

// Returns the bits in e4m3 of a value from -4 to 4.
uint8_t e4m3_of(int value) {
  constexpr uint8_t kMagnitudes[] = {0x00, 0x38, 0x40, 0x44, 0x48};
  return static_cast<uint8_t>(kMagnitudes[value < 0 ? -value : value] | (value < 0 ? 0x80 : 0));
}
int a_at(uint32_t row, uint32_t k) { return static_cast<int>((row * 5 + k * 11 + k / 128) % 9) - 4; }
int b_at(uint32_t column, uint32_t k) { return static_cast<int>((column * 7 + k * 3 + k / 128) % 9) - 4; }

struct Operands {
  alignas(16) uint8_t a[kRows * kLength], b[kColumns * kLength];
  float d[kRows * kColumns];
  Operands() : d() {
    for (uint32_t k = 0; k < kLength; ++k) {
      for (uint32_t row = 0; row < kRows; ++row) a[row * kLength + k] = e4m3_of(a_at(row, k));
      for (uint32_t column = 0; column < kColumns; ++column)
        b[column * kLength + k] = e4m3_of(b_at(column, k));
    }
  }
  bool right() const {
    for (uint32_t row = 0; row < kRows; ++row)
      for (uint32_t column = 0; column < kColumns; ++column) {
        int want = 0;
        for (uint32_t k = 0; k < kLength; ++k) want += a_at(row, k) * b_at(column, k);
        if (d[row * kColumns + column] != static_cast<float>(want)) return false;
      }
    return true;
  }
};

template <class Parameter>
std::string run_on_hopper(void (*kernel)(Parameter), const Parameter& parameter, uint32_t threads,
                          uint32_t schedule, std::vector<simt::Buffer> buffers = {}) {
  simt::configure({simt::schedule(schedule), simt::Architecture::hopper, std::move(buffers)});
  char why[1024] = "";
  if (launch(qcts_problem{}, {.blocks_x = 1, .threads = threads, .shared_bytes = kSharedBytes}, kernel,
             parameter) != QCTS_OK)
    last_failure(why, sizeof why);
  return why;
}

TensorMap map_of(const uint8_t* first, uint32_t rows) {
  TensorMap map = {};
  EXPECT_EQ(make_tensor_map({first, kLength, rows, kLength, 1, rows}, &map), QCTS_OK);
  return map;
}

std::string run_pipeline(void (*kernel)(Maps), Operands& operands, uint32_t schedule) {
  const Maps maps = {map_of(operands.a, kRows), map_of(operands.b, kColumns), operands.d};
  return run_on_hopper(
      kernel, maps, kThreads, schedule,
      {{"a", operands.a, 1, sizeof operands.a, sizeof operands.a, false},
       {"b", operands.b, 1, sizeof operands.b, sizeof operands.b, false},
       {"d", reinterpret_cast<const uint8_t*>(operands.d), 1, sizeof operands.d, sizeof operands.d, true}});
}

TEST(ExecutorHopper, RunsARightPipelineTheSameUnderEverySchedule) {
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    Operands operands;
    EXPECT_EQ(run_pipeline(pipeline<Planted::none>, operands, schedule), "") << schedule;
    EXPECT_TRUE(operands.right()) << schedule;
  }
}

struct PlantedCase {
  const char* name;
  void (*kernel)(Maps);
  const char* text;  // of a fault; "": a fault or a wrong answer, depending on the schedule
};
class ExecutorHopperPipeline : public testing::TestWithParam<PlantedCase> {};

TEST_P(ExecutorHopperPipeline, FaultIsFoundByOneOfFourSchedules) {
  std::string texts;
  int found = 0;
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    Operands operands;
    const std::string text = run_pipeline(GetParam().kernel, operands, schedule);
    texts += text + "\n";
    if (!text.empty() || !operands.right()) ++found;
  }
  EXPECT_GT(found, 0);
  EXPECT_THAT(texts, HasSubstr(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    Executor, ExecutorHopperPipeline,
    testing::Values(
        PlantedCase{"no_wait_for_slot", pipeline<Planted::no_wait_for_slot>,
                    "has all its 1 arrivals of this phase"},
        PlantedCase{"half_the_bytes", pipeline<Planted::half_the_bytes>, "hangs"},
        PlantedCase{"no_wait_for_bytes", pipeline<Planted::no_wait_for_bytes>, ""},
        PlantedCase{"released_early", pipeline<Planted::released_early>, ""},
        PlantedCase{"read_early", pipeline<Planted::read_early>, ""},
        PlantedCase{"touched_early", pipeline<Planted::touched_early>,
                    "touched the accumulators of a wgmma under way"},
        PlantedCase{"no_wgmma_fence", pipeline<Planted::no_wgmma_fence>,
                    "calls wgmma without a wgmma_fence()"},
        PlantedCase{"no_barrier_fence", pipeline<Planted::no_barrier_fence>,
                    "did not show by fence_barriers()"},
        PlantedCase{"no_wgmma_commit", pipeline<Planted::no_wgmma_commit>, "wgmma of its warp are under way"},
        PlantedCase{"column_not_advanced", pipeline<Planted::column_not_advanced>, ""},
        PlantedCase{"wrong_parity", pipeline<Planted::wrong_parity>, ""},
        PlantedCase{"too_many_arrivals", pipeline<Planted::too_many_arrivals>, ""},
        PlantedCase{"box_misplaced", pipeline<Planted::box_misplaced>, "which is not a multiple of 1024"},
        PlantedCase{"last_box_unused", pipeline<Planted::last_box_unused>, "boxes are under way"}),
    [](const auto& info) { return info.param.name; });

// Multiplies operands that the threads store themselves, in the order of copy_box().
template <bool kFenced>
void multiply_stored(float* d) {
  for (uint32_t at = thread_index(); at < (kRows + kColumns) * 8; at += kConsumers) {
    const uint32_t row = at / 8, unit = at % 8;
    Words4 words = {};
    if (unit == 0) words.word[0] = row < kRows ? 0x38 : 0x40;  // 1 and 2 at k = 0
    store_shared(shared_memory() + row * kBoxRowBytes + (unit ^ row % 8) * 16, words);
  }
  if (kFenced) fence_async();
  sync_block();
  float sums[kColumns / 2] = {};
  wgmma_fence();
  wgmma_e4m3(sums, matrix_descriptor(shared_memory()), matrix_descriptor(shared_memory() + kABytes));
  wgmma_commit();
  wgmma_wait<0>();
  for (uint32_t i = 0; i < kColumns / 2; ++i)
    store_global(d + thread_index() * kColumns / 2 + i, bits_of(sums[i]));
}

// Some GPUs do not show this fault (tilelang#2634).
TEST(ExecutorHopper, NamesStoresThatAreNotShownToWgmma) {
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    std::vector<float> d(kRows * kColumns);
    EXPECT_EQ(run_on_hopper(multiply_stored<true>, d.data(), kConsumers, schedule), "");
    EXPECT_THAT(d, testing::Each(2.0f));
    EXPECT_THAT(run_on_hopper(multiply_stored<false>, d.data(), kConsumers, schedule),
                AllOf(HasSubstr("wgmma reads shared memory+"), HasSubstr("which thread"),
                      HasSubstr("wrote and did not show by fence_async()")));
  }
}

// Takes a from registers. Row r of a has r + 1 at k = 0, and b has 1 there.
void multiply_registers(float* d) {
  for (uint32_t at = thread_index(); at < kColumns * 8; at += kConsumers) {
    Words4 words = {};
    if (at % 8 == 0) words.word[0] = 0x3F80;
    store_shared(shared_memory() + at / 8 * kBoxRowBytes + (at % 8 ^ at / 8 % 8) * 16, words);
  }
  fence_async();
  sync_block();
  const uint32_t row = warp_index() * 16 + lane_index() / 4;
  uint32_t a[4] = {};
  if (lane_index() % 4 == 0) {
    a[0] = f32_to_bf16(static_cast<float>(row + 1));
    a[1] = f32_to_bf16(static_cast<float>(row + 9));
  }
  float sums[kColumns / 2] = {};
  wgmma_fence();
  wgmma_bf16(sums, a, matrix_descriptor(shared_memory()));
  wgmma_commit();
  wgmma_wait<0>();
  for (uint32_t i = 0; i < kColumns / 2; ++i)
    store_global(d + (row + i / 2 % 2 * 8) * kColumns + i / 4 * 8 + lane_index() % 4 * 2 + i % 2,
                 bits_of(sums[i]));
}

TEST(ExecutorHopper, TakesAFromRegisters) {
  std::vector<float> d(kRows * kColumns);
  EXPECT_EQ(run_on_hopper(multiply_registers, d.data(), kConsumers, 1), "");
  for (uint32_t i = 0; i < d.size(); ++i) EXPECT_EQ(d[i], static_cast<float>(i / kColumns + 1)) << i;
}

template <int32_t kColumn>
void copies_one_box(const TensorMap map) {
  auto* barrier = reinterpret_cast<uint64_t*>(shared_memory() + 2048);
  if (thread_index() == 0) {
    make_barrier(barrier, 1);
    fence_barriers();
    arrive_expecting(barrier, 4 * kBoxRowBytes);
    copy_box(shared_memory(), &map, kColumn, 1, barrier);
  }
  sync_block();
  wait_barrier(barrier, 0);
}

// The tensor has 3 rows of 100 elements of two bytes. The box reaches over both ends of it.
TEST(ExecutorHopper, FillsABoxWithZerosOutsideTheTensor) {
  alignas(16) uint16_t x[3][104];
  for (uint16_t i = 0; i < 3 * 104; ++i) x[i / 104][i % 104] = i;
  TensorMap map = {};
  ASSERT_EQ(make_tensor_map({x, sizeof x[0], 3, 100, 2, 4}, &map), QCTS_OK);
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    EXPECT_EQ(run_on_hopper(copies_one_box<56>, map, 32, schedule), "");
    for (uint32_t r = 0; r < 4; ++r)
      for (uint32_t c = 0; c < 64; ++c) {
        uint16_t got;
        std::memcpy(&got, simt::shared_memory() + r * kBoxRowBytes + (c / 8 ^ r) * 16 + c % 8 * 2, 2);
        EXPECT_EQ(got, r < 2 && c < 44 ? (r + 1) * 104 + 56 + c : 0) << r << ", " << c;
      }
  }
}

TEST(ExecutorHopper, RefusesABoxThatDoesNotBeginAt16Bytes) {
  alignas(16) const uint16_t x[3][104] = {};
  for (const uint32_t element_bytes : {1u, 2u}) {
    TensorMap map = {};
    ASSERT_EQ(make_tensor_map({x, sizeof x[0], 3, 100, element_bytes, 4}, &map), QCTS_OK);
    EXPECT_THAT(run_on_hopper(copies_one_box<-4>, map, 32, 0), HasSubstr("from column -4 of elements of"));
    const std::string at_8 = run_on_hopper(copies_one_box<8>, map, 32, 0);
    if (element_bytes == 2)
      EXPECT_EQ(at_8, "");
    else
      EXPECT_THAT(at_8, HasSubstr("not at a multiple of 16 bytes"));
  }
}

TEST(ExecutorHopper, MakesNoMapThatADriverRefuses) {
  alignas(16) uint8_t bytes[64] = {};
  TensorMap map;
  for (const TensorShape& shape :
       {TensorShape{bytes + 1, 32, 1, 16, 1, 8}, TensorShape{bytes, 24, 1, 16, 1, 8},
        TensorShape{bytes, 32, 0, 16, 1, 8}, TensorShape{bytes, 32, 1, 16, 1, 257},
        TensorShape{bytes, 32, 1, 16, 4, 8}}) {
    EXPECT_EQ(make_tensor_map(shape, &map), QCTS_FAILED);
    char why[256];
    last_failure(why, sizeof why);
    EXPECT_THAT(why, HasSubstr("tensor map"));
  }
}

}  // namespace
}  // namespace qcts::hopper_tests
