// SPDX-License-Identifier: BSD-3-Clause
// Checks barriers in shared memory and copies of boxes (compute capability 9.0). Each block has one case.
#include "kernels/cuda/barrier.h"
#include "kernels/device_check/frame.h"

namespace qcts::device_check {
namespace {

// One warp passes words through stages to four other warps. Each stage has one barrier that says that it is
// full, and one that says that it is empty.
struct Ring {
  static constexpr uint32_t kReaders = 128, kThreads = kReaders + kWarpLanes, kStages = 2, kRounds = 7;
  static constexpr uint32_t kStageBytes = kWarpLanes * kWordBytes;
  static constexpr uint32_t kIn = kRounds * kWarpLanes, kOut = kReaders;
  static constexpr uint32_t kSharedBytes = kStages * (kStageBytes + 2 * 8);

  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out) {
    auto* full = reinterpret_cast<uint64_t*>(shared_memory() + kStages * kStageBytes);
    uint64_t* empty = full + kStages;
    if (thread_index() == 0) {
      for (uint32_t stage = 0; stage < kStages; ++stage) {
        make_barrier(full + stage, kWarpLanes);
        make_barrier(empty + stage, kReaders);
      }
      fence_barriers();
    }
    sync_block();
    uint32_t result = 0;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint32_t stage = round % kStages, use = round / kStages;
      uint8_t* words = shared_memory() + stage * kStageBytes;
      if (thread_index() >= kReaders) {
        if (use > 0) wait_barrier(empty + stage, (use - 1) % 2);
        store_shared(words + lane_index() * kWordBytes, load_word(in, round * kWarpLanes + lane_index()));
        arrive(full + stage);
      } else {
        wait_barrier(full + stage, use % 2);
        const uint32_t word = load_shared<uint32_t>(words + thread_index() * 7 % kWarpLanes * kWordBytes);
        result = (result << 5 | result >> 27) ^ word;
        arrive(empty + stage);
      }
    }
    if (thread_index() < kReaders) store_word(out, thread_index(), result);
  }
};

// Copies boxes of a tensor of kTensorRows rows. After each row there are bytes that do not belong to the
// tensor. `in` says where the box begins.
constexpr uint32_t kTensorRows = 70, kTensorColumns = 200, kGapBytes = 16;
template <uint32_t kElementBytes>
constexpr uint32_t kStrideBytes = (kTensorColumns * kElementBytes + 15) / 16 * 16 + kGapBytes;

constexpr uint32_t kBoxThreads = 64;
template <uint32_t kBoxRows>
__global__ void __launch_bounds__(kBoxThreads)
    copy_boxes(const __grid_constant__ TensorMap map, const Cases cases) {
  constexpr uint32_t kBytes = kBoxRows * kBoxRowBytes;
  auto* barrier = reinterpret_cast<uint64_t*>(shared_memory() + kBytes);
  if (thread_index() == 0) {
    const uint8_t* in = cases.in + block_x() * 2 * kWordBytes;
    make_barrier(barrier, 1);
    fence_barriers();
    arrive_expecting(barrier, kBytes);
    copy_box(shared_memory(), &map, static_cast<int32_t>(load_word(in, 0)),
             static_cast<int32_t>(load_word(in, 1)), barrier);
  }
  sync_block();
  wait_barrier(barrier, 0);
  uint8_t* out = cases.out + static_cast<int64_t>(block_x()) * kBytes;
  for (uint32_t at = thread_index() * 16; at < kBytes; at += kBoxThreads * 16)
    store_global(out + at, load_shared<Words4>(shared_memory() + at));
}
template <uint32_t kElementBytes, uint32_t kBoxRows>
qcts_status run_boxes(const Cases& cases) {
  TensorMap map;
  const TensorShape shape = {
      cases.common, kStrideBytes<kElementBytes>, kTensorRows, kTensorColumns, kElementBytes, kBoxRows};
  if (make_tensor_map(shape, &map) != QCTS_OK) return QCTS_FAILED;
  const Launch at = {
      .blocks_x = cases.count, .threads = kBoxThreads, .shared_bytes = kBoxRows * kBoxRowBytes + 8};
  return launch(qcts_problem{}, at, copy_boxes<kBoxRows>, map, cases);
}

// Inputs.

void fill_ring(Random& random, int64_t, uint32_t* in) {
  for (uint32_t i = 0; i < Ring::kIn; ++i) in[i] = random.word();
}
template <uint32_t kElementBytes>
constexpr uint32_t kTensorWords = kTensorRows * kStrideBytes<kElementBytes> / kWordBytes;
template <uint32_t kElementBytes>
void fill_tensor(Random& random, uint32_t* common) {
  for (uint32_t i = 0; i < kTensorWords<kElementBytes>; ++i) common[i] = random.word();
}
// Places the box inside the tensor or over its far edges; with kBefore, also over the near edges or far away.
template <uint32_t kElementBytes, bool kBefore>
void fill_place(Random& random, int64_t, uint32_t* in) {
  constexpr int kFar = 1 << 16, kUnit = 16 / kElementBytes, kUnits = kTensorColumns / kUnit + 2;
  const bool far = kBefore && random.one_in(16);
  const int first_unit = kBefore ? -10 : 0, first_row = kBefore ? -70 : 0;
  in[0] =
      static_cast<uint32_t>(kUnit * (far ? random.between(-kFar, kFar) : random.between(first_unit, kUnits)));
  in[1] = static_cast<uint32_t>(far && random.one_in(2) ? random.between(-kFar, kFar)
                                                        : random.between(first_row, kTensorRows + 5));
}
std::string explain_place(const uint32_t* in, uint32_t word) {
  return "column " + std::to_string(static_cast<int32_t>(in[0])) + ", row " +
         std::to_string(static_cast<int32_t>(in[1])) + "; word " + std::to_string(word % 32) + " of row " +
         std::to_string(word / 32) + " of the box";
}

template <uint32_t kElementBytes, uint32_t kBoxRows, bool kBefore>
Check boxes() {
  return {.name = "copy_box: " + std::to_string(kBoxRows) + " rows, elements of " +
                  std::to_string(kElementBytes) + (kElementBytes == 1 ? " byte" : " bytes") +
                  (kBefore ? "" : ", none before the tensor"),
          .in_words = 2,
          .out_words = kBoxRows * kBoxRowBytes / kWordBytes,
          .fill = fill_place<kElementBytes, kBefore>,
          .run = run_boxes<kElementBytes, kBoxRows>,
          .cases = 1 << 13,
          .capability = 90,
          .common_words = kTensorWords<kElementBytes>,
          .fill_common = fill_tensor<kElementBytes>,
          .explain = explain_place};
}

}  // namespace

std::vector<Check> QCTS_SIDE::checks_of_barriers() {
  return {{.name = "make_barrier, arrive, wait_barrier",
           .in_words = Ring::kIn,
           .out_words = Ring::kOut,
           .fill = fill_ring,
           .run = by_block<Ring>,
           .cases = 1 << 13,
           .capability = 90},
          boxes<1, 1, false>(),
          boxes<1, 8, true>(),
          boxes<1, 64, true>(),
          boxes<2, 8, true>(),
          boxes<2, 64, true>(),
          boxes<2, 256, true>()};
}

}  // namespace qcts::device_check
