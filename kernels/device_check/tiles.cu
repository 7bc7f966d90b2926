// SPDX-License-Identifier: BSD-3-Clause
// Checks mma.sync. A case is a [16, 32 bytes], b [8, 32 bytes] and the sums that d begins with, [16, 8]. Each
// warp has one case. It takes its fragments from memory as kernels/cuda/matrix.h describes them.
#include "kernels/cuda/matrix.h"
#include "kernels/device_check/frame.h"

namespace qcts::device_check {
namespace {

constexpr uint32_t kRows = 16, kColumns = 8, kRowWords = 8;  // of k: 16 or 32 elements
constexpr uint32_t kAWords = kRows * kRowWords, kBWords = kColumns * kRowWords;

template <class Sum, class Multiply>
struct Tile {
  static constexpr uint32_t kIn = kAWords + kBWords + kRows * kColumns, kOut = kRows * kColumns;
  static constexpr uint32_t kSharedBytes = 0, kCases = 4;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out, uint8_t*) {
    const uint32_t row = lane_index() / 4, pair = lane_index() % 4;
    uint32_t a[4], b[2];
    Sum d[4];
    QCTS_UNROLL
    for (uint32_t i = 0; i < 4; ++i) a[i] = load_word(in, (row + i % 2 * 8) * kRowWords + i / 2 * 4 + pair);
    QCTS_UNROLL
    for (uint32_t i = 0; i < 2; ++i) b[i] = load_word(in, kAWords + row * kRowWords + i * 4 + pair);
    QCTS_UNROLL
    for (uint32_t i = 0; i < 4; ++i)
      d[i] = __builtin_bit_cast(Sum, load_word(in + (kAWords + kBWords) * kWordBytes, sum_of(i)));
    Multiply()(d, a, b);
    QCTS_UNROLL
    for (uint32_t i = 0; i < 4; ++i) store_word(out, sum_of(i), __builtin_bit_cast(uint32_t, d[i]));
  }
  QCTS_DEVICE static uint32_t sum_of(uint32_t i) {
    return (lane_index() / 4 + i / 2 * 8) * kColumns + lane_index() % 4 * 2 + i % 2;
  }
};

#define QCTS_MULTIPLY(Name, Sum, function)                                                           \
  struct Name {                                                                                      \
    QCTS_DEVICE void operator()(Sum (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) const { \
      function(d, a, b);                                                                             \
    }                                                                                                \
  };
QCTS_MULTIPLY(MultiplyBf16, float, multiply_bf16)
QCTS_MULTIPLY(MultiplyF16, float, multiply_f16)
QCTS_MULTIPLY(MultiplyS8, int32_t, multiply_s8)
#undef QCTS_MULTIPLY

template <Operand kType>
void fill_tile(Random& random, int64_t, uint32_t* in) {
  const Style style = any_style(random);
  for (uint32_t row = 0; row < kRows + kColumns; ++row)
    fill_row(random, style, kType, row < kRows, in + row * kRowWords, kRowWords * kWordBytes);
  for (uint32_t i = 0; i < kRows * kColumns; ++i) in[kAWords + kBWords + i] = any_start(random, style, kType);
}

template <Operand kType>
void fill_tile_beside_zeros(Random& random, int64_t, uint32_t* in) {
  fill_beside_zeros(random, kType, kRows, kColumns, kRowWords * kWordBytes, in);
}

std::string explain(const uint32_t* in, uint32_t word) {
  const uint32_t row = word / kColumns, column = word % kColumns;
  return "row " + std::to_string(row) + ", column " + std::to_string(column) + ": " +
         words_text("c", in + kAWords + kBWords + word, 1) + "; " +
         words_text("a", in + row * kRowWords, kRowWords) + "; " +
         words_text("b", in + kAWords + column * kRowWords, kRowWords);
}

template <Operand kType, class Sum, class Multiply>
Check tile(const char* name) {
  using Body = Tile<Sum, Multiply>;
  return {.name = name,
          .in_words = Body::kIn,
          .out_words = Body::kOut,
          .fill = fill_tile<kType>,
          .run = by_warp<Body>,
          .output = kType == Operand::s8 ? Output::bits : Output::f32,
          .group = Tiles::mma,
          .tiles = 1,
          .share = kType == Operand::s8 ? 1u : 2u,
          .explain = explain};
}

template <Operand kType, class Multiply>
Check tile_beside_zeros(const char* name) {
  Check check = tile<kType, float, Multiply>(name);
  check.fill = fill_tile_beside_zeros<kType>;
  check.group = Tiles::none;
  check.cases = 1 << 16;
  return check;
}

}  // namespace

std::vector<Check> QCTS_SIDE::checks_of_zeros() {
  return {tile_beside_zeros<Operand::bf16, MultiplyBf16>("sums beside zeros: mma.sync of bf16"),
          tile_beside_zeros<Operand::f16, MultiplyF16>("sums beside zeros: mma.sync of f16")};
}

std::vector<Check> QCTS_SIDE::checks_of_tiles() {
  return {tile<Operand::bf16, float, MultiplyBf16>("multiply_bf16"),
          tile<Operand::f16, float, MultiplyF16>("multiply_f16"),
          tile<Operand::s8, int32_t, MultiplyS8>("multiply_s8")};
}

}  // namespace qcts::device_check
