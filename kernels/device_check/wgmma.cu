// SPDX-License-Identifier: BSD-3-Clause
// Checks wgmma (compute capability 9.0a). A case is a [64, 128 bytes], b [N, 128 bytes] and the sums that d
// begins with, [64, N]. A block of four warps adds four products to d, with 32 bytes of k each. With kSteps
// above 1, the block works as a kernel does: rows of kSteps * 128 bytes come in boxes through a ring of
// stages.
#include "kernels/cuda/wgmma.h"
#include "kernels/device_check/frame.h"

namespace qcts::device_check {
namespace {

constexpr uint32_t kRows = 64, kGroupThreads = 128, kProducts = kBoxRowBytes / 32;
constexpr uint32_t kRowWords = kBoxRowBytes / kWordBytes, kRowUnits = kBoxRowBytes / 16;

template <Operand kType>
struct Product;
#define QCTS_PRODUCT(type, Number, function)                                \
  template <>                                                               \
  struct Product<Operand::type> {                                           \
    using Sum = Number;                                                     \
    template <uint32_t kCount, class A>                                     \
    QCTS_DEVICE static void add(Sum (&d)[kCount], const A& a, uint64_t b) { \
      function(d, a, b);                                                    \
    }                                                                       \
  };
QCTS_PRODUCT(bf16, float, wgmma_bf16)
QCTS_PRODUCT(e4m3, float, wgmma_e4m3)
QCTS_PRODUCT(s8, int32_t, wgmma_s8)
#undef QCTS_PRODUCT

// Returns the index of this thread's sum i in [64, columns].
QCTS_DEVICE uint32_t place_of_sum(uint32_t i, uint32_t columns) {
  const uint32_t row = warp_index() * 16 + lane_index() / 4 + i / 2 % 2 * 8;
  return row * columns + i / 4 * 8 + lane_index() % 4 * 2 + i % 2;
}
template <class Sum, uint32_t kCount>
QCTS_DEVICE void load_sums(Sum (&d)[kCount], const uint8_t* from) {
  QCTS_UNROLL
  for (uint32_t i = 0; i < kCount; ++i)
    d[i] = __builtin_bit_cast(Sum, load_word(from, place_of_sum(i, 2 * kCount)));
}
template <class Sum, uint32_t kCount>
QCTS_DEVICE void store_sums(const Sum (&d)[kCount], uint8_t* to) {
  QCTS_UNROLL
  for (uint32_t i = 0; i < kCount; ++i)
    store_word(to, place_of_sum(i, 2 * kCount), __builtin_bit_cast(uint32_t, d[i]));
}

// Stores rows of 128 bytes in the order of copy_box().
QCTS_DEVICE void stage_rows(const uint8_t* from, uint8_t* to, uint32_t rows) {
  for (uint32_t at = thread_index(); at < rows * kRowUnits; at += kGroupThreads)
    store_shared(to + at / kRowUnits * kBoxRowBytes + (at % kRowUnits ^ at / kRowUnits % 8) * 16,
                 load_global<Words4>(from + at * 16));
}

template <Operand kType, uint32_t kColumns, bool kInRegisters>
struct Group {
  static constexpr uint32_t kThreads = kGroupThreads;
  static constexpr uint32_t kAWords = kRows * kRowWords, kBWords = kColumns * kRowWords;
  static constexpr uint32_t kIn = kAWords + kBWords + kRows * kColumns, kOut = kRows * kColumns;
  static constexpr uint32_t kSharedBytes = (kAWords + kBWords) * kWordBytes;

  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out) {
    uint8_t* a = shared_memory();
    uint8_t* b = a + kAWords * kWordBytes;
    if (!kInRegisters) stage_rows(in, a, kRows);
    stage_rows(in + kAWords * kWordBytes, b, kColumns);
    fence_async();
    uint32_t words[kProducts][4];
    QCTS_UNROLL
    for (uint32_t step = 0; step < kProducts; ++step) QCTS_UNROLL
    for (uint32_t i = 0; i < 4; ++i)
      words[step][i] = load_word(in, (warp_index() * 16 + lane_index() / 4 + i % 2 * 8) * kRowWords +
                                         step * 8 + i / 2 * 4 + lane_index() % 4);
    typename Product<kType>::Sum d[kColumns / 2];
    load_sums(d, in + (kAWords + kBWords) * kWordBytes);
    sync_block();
    const uint64_t of_a = matrix_descriptor(a), of_b = matrix_descriptor(b);
    wgmma_fence();
    QCTS_UNROLL
    for (uint32_t step = 0; step < kProducts; ++step) {
      if constexpr (kInRegisters)
        Product<kType>::add(d, words[step], of_b + 2 * step);
      else
        Product<kType>::add(d, of_a + 2 * step, of_b + 2 * step);
    }
    wgmma_commit();
    wgmma_wait<0>();
    store_sums(d, out);
  }
};

// The pipeline of a kernel.

template <Operand kType, uint32_t kColumns>
struct Pipeline {
  static constexpr uint32_t kSteps = 5, kStages = 3, kLength = kSteps * kBoxRowBytes;
  static constexpr uint32_t kThreads = kGroupThreads + kWarpLanes;
  static constexpr uint32_t kElementBytes = kType == Operand::bf16 ? 2 : 1;
  static constexpr uint32_t kABytes = kRows * kBoxRowBytes, kStageBytes = kABytes + kColumns * kBoxRowBytes;
  static constexpr uint32_t kSharedBytes = kStages * (kStageBytes + 2 * 8);
  static constexpr uint32_t kCaseRows = kRows + kColumns;  // rows of a, then rows of b
  static constexpr uint32_t kIn = kCaseRows * kLength / kWordBytes, kOut = kRows * kColumns;
};

template <class Shape>
QCTS_DEVICE void fetch(const TensorMap* a, const TensorMap* b, uint64_t* full, uint64_t* empty) {
  const auto row = static_cast<int32_t>(block_x() * Shape::kCaseRows);
  for (uint32_t step = 0; step < Shape::kSteps; ++step) {
    const uint32_t stage = step % Shape::kStages, use = step / Shape::kStages;
    if (use > 0) wait_barrier(empty + stage, (use - 1) % 2);
    uint8_t* to = shared_memory() + stage * Shape::kStageBytes;
    arrive_expecting(full + stage, Shape::kStageBytes);
    const auto column = static_cast<int32_t>(step * kBoxRowBytes / Shape::kElementBytes);
    copy_box(to, a, column, row, full + stage);
    copy_box(to + Shape::kABytes, b, column, row + static_cast<int32_t>(kRows), full + stage);
  }
}

template <Operand kType, uint32_t kColumns>
__global__ void __launch_bounds__(Pipeline<kType, kColumns>::kThreads)
    pipeline(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const Cases cases) {
  using Shape = Pipeline<kType, kColumns>;
  auto* full = reinterpret_cast<uint64_t*>(shared_memory() + Shape::kStages * Shape::kStageBytes);
  uint64_t* empty = full + Shape::kStages;
  if (thread_index() == 0) {
    for (uint32_t stage = 0; stage < Shape::kStages; ++stage) {
      make_barrier(full + stage, 1);
      make_barrier(empty + stage, kGroupThreads / kWarpLanes);
    }
    fence_barriers();
  }
  sync_block();
  if (thread_index() >= kGroupThreads) {
    if (lane_index() == 0) fetch<Shape>(&a, &b, full, empty);
    return;
  }
  typename Product<kType>::Sum d[kColumns / 2] = {};
  for (uint32_t step = 0; step < Shape::kSteps; ++step) {
    const uint32_t stage = step % Shape::kStages;
    wait_barrier(full + stage, step / Shape::kStages % 2);
    const uint64_t of_a = matrix_descriptor(shared_memory() + stage * Shape::kStageBytes),
                   of_b = matrix_descriptor(shared_memory() + stage * Shape::kStageBytes + Shape::kABytes);
    wgmma_fence();
    QCTS_UNROLL
    for (uint32_t at = 0; at < kProducts; ++at) Product<kType>::add(d, of_a + 2 * at, of_b + 2 * at);
    wgmma_commit();
    wgmma_wait<0>();
    if (lane_index() == 0) arrive(empty + stage);
  }
  store_sums(d, cases.out + static_cast<int64_t>(block_x()) * Shape::kOut * kWordBytes);
}

template <Operand kType, uint32_t kColumns>
qcts_status run_pipeline(const Cases& cases) {
  using Shape = Pipeline<kType, kColumns>;
  const auto map_of = [&](uint32_t box_rows, TensorMap* map) {
    return make_tensor_map({cases.in, Shape::kLength, cases.count * Shape::kCaseRows,
                            Shape::kLength / Shape::kElementBytes, Shape::kElementBytes, box_rows},
                           map);
  };
  TensorMap a, b;
  if (map_of(kRows, &a) != QCTS_OK || map_of(kColumns, &b) != QCTS_OK) return QCTS_FAILED;
  const Launch at = {
      .blocks_x = cases.count, .threads = Shape::kThreads, .shared_bytes = Shape::kSharedBytes};
  return launch(qcts_problem{}, at, pipeline<kType, kColumns>, a, b, cases);
}

// Inputs.

template <Operand kType, uint32_t kColumns>
void fill_group(Random& random, int64_t, uint32_t* in) {
  const Style style = any_style(random);
  for (uint32_t row = 0; row < kRows + kColumns; ++row)
    fill_row(random, style, kType, row < kRows, in + row * kRowWords, kBoxRowBytes);
  uint32_t* start = in + (kRows + kColumns) * kRowWords;
  for (uint32_t i = 0; i < kRows * kColumns; ++i) start[i] = any_start(random, style, kType);
}
template <Operand kType, uint32_t kColumns>
void fill_group_beside_zeros(Random& random, int64_t, uint32_t* in) {
  fill_beside_zeros(random, kType, kRows, kColumns, kBoxRowBytes, in);
}
template <Operand kType, uint32_t kColumns>
void fill_pipeline(Random& random, int64_t, uint32_t* in) {
  using Shape = Pipeline<kType, kColumns>;
  const Style style = any_style(random);
  for (uint32_t row = 0; row < Shape::kCaseRows; ++row)
    fill_row(random, style, kType, row < kRows, in + row * Shape::kLength / kWordBytes, Shape::kLength);
}

template <uint32_t kColumns, uint32_t kWords, bool kStart>
std::string explain(const uint32_t* in, uint32_t word) {
  const uint32_t row = word / kColumns, column = word % kColumns;
  return "row " + std::to_string(row) + ", column " + std::to_string(column) + ": " +
         (kStart ? words_text("c", in + (kRows + kColumns) * kWords + word, 1) + "; " : "") +
         words_text("a", in + row * kWords, kWords) + "; " +
         words_text("b", in + (kRows + column) * kWords, kWords);
}

constexpr const char* name_of(Operand type) {
  return type == Operand::bf16 ? "wgmma_bf16" : type == Operand::e4m3 ? "wgmma_e4m3" : "wgmma_s8";
}
// Each N gets as many tiles as take the same time.
constexpr uint32_t kShares = 128;

template <Operand kType, uint32_t kColumns, bool kInRegisters>
Check group() {
  using Body = Group<kType, kColumns, kInRegisters>;
  return {.name = std::string(name_of(kType)) + ": N = " + std::to_string(kColumns) + ", a in " +
                  (kInRegisters ? "registers" : "shared memory"),
          .in_words = Body::kIn,
          .out_words = Body::kOut,
          .fill = fill_group<kType, kColumns>,
          .run = by_block<Body>,
          .output = kType == Operand::s8 ? Output::bits : Output::f32,
          .capability = 90,
          .group = Tiles::wgmma,
          .tiles = kProducts,
          .share = kShares / kColumns,
          .explain = explain<kColumns, kRowWords, true>};
}
template <Operand kType>
Check group_beside_zeros() {
  constexpr uint32_t kColumns = 16;
  Check check = group<kType, kColumns, true>();
  check.name = "sums beside zeros: " + std::string(name_of(kType));
  check.fill = fill_group_beside_zeros<kType, kColumns>;
  check.group = Tiles::none;
  check.cases = 1 << 11;
  return check;
}
template <Operand kType, uint32_t kColumns>
Check staged() {
  using Shape = Pipeline<kType, kColumns>;
  return {.name = std::string(name_of(kType)) + ": N = " + std::to_string(kColumns) + ", boxes in a ring",
          .in_words = Shape::kIn,
          .out_words = Shape::kOut,
          .fill = fill_pipeline<kType, kColumns>,
          .run = run_pipeline<kType, kColumns>,
          .cases = 1 << 9,
          .output = kType == Operand::s8 ? Output::bits : Output::f32,
          .capability = 90,
          .explain = explain<kColumns, Shape::kLength / kWordBytes, false>};
}

template <Operand kType>
void add_groups(std::vector<Check>& checks) {
  for (const Check& check : {group<kType, 16, false>(), group<kType, 32, false>(), group<kType, 64, false>(),
                             group<kType, 128, false>(), group<kType, 16, true>(), group<kType, 32, true>(),
                             group<kType, 64, true>(), group<kType, 128, true>()})
    checks.push_back(check);
}

}  // namespace

std::vector<Check> QCTS_SIDE::checks_of_wgmma() {
  std::vector<Check> checks;
  add_groups<Operand::bf16>(checks);
  add_groups<Operand::e4m3>(checks);
  add_groups<Operand::s8>(checks);
  for (const Check& check :
       {staged<Operand::bf16, 64>(), staged<Operand::e4m3, 128>(), staged<Operand::s8, 16>(),
        group_beside_zeros<Operand::bf16>(), group_beside_zeros<Operand::e4m3>()})
    checks.push_back(check);
  return checks;
}

}  // namespace qcts::device_check
