// SPDX-License-Identifier: BSD-3-Clause
// Tests the executor's matrix instructions. Compares fragments with plain products. Compares the sums of
// tensor cores with values derived by hand and with vectors that MMA-Sim computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/matrix.h"
#include "kernels/emulated/simt.h"
#include "kernels/emulated/simt_sums.h"
#include "kernels/families/elements.h"

namespace qcts::matrix_tests {
namespace {

using namespace qcts::device;

constexpr int kM = 16, kN = 8;

// a [16][kRowBytes], b [8][kRowBytes], d [16][8].
constexpr int kRowBytes = 32;
struct Tile {
  alignas(16) uint8_t a[kM][kRowBytes], b[kN][kRowBytes];
  uint32_t d[kM][kN];
};

// Loads both operands with ldmatrix, multiplies them, and adds the products to d.
template <class Sum, void (*kMultiply)(Sum (&)[4], const uint32_t (&)[4], const uint32_t (&)[2])>
void multiply_tile(Tile* tile) {
  const uint32_t lane = lane_index();
  uint8_t* a = shared_memory();
  uint8_t* b = a + sizeof tile->a;
  store_shared(a + 16 * lane, load_global<Words4>(&tile->a[0][0] + 16 * lane));
  if (lane < 16) store_shared(b + 16 * lane, load_global<Words4>(&tile->b[0][0] + 16 * lane));
  sync_warp();
  uint32_t of_a[4], of_b[2];
  load_matrices(of_a, a + lane % 16 * kRowBytes + lane / 16 * 16);
  load_matrices(of_b, b + lane % 8 * kRowBytes + lane / 8 % 2 * 16);
  Sum d[4];
  const uint32_t row = lane / 4, column = lane % 4 * 2;
  for (uint32_t i = 0; i < 4; ++i) d[i] = __builtin_bit_cast(Sum, tile->d[row + i / 2 * 8][column + i % 2]);
  kMultiply(d, of_a, of_b);
  for (uint32_t i = 0; i < 4; ++i)
    store_global(&tile->d[row + i / 2 * 8][column + i % 2], __builtin_bit_cast(uint32_t, d[i]));
}

void run_tile(void (*kernel)(Tile*), Tile& tile, simt::Architecture architecture, uint32_t schedule = 0) {
  simt::configure({simt::schedule(schedule), architecture, {}});
  const Launch at = {.blocks_x = 1, .threads = 32, .shared_bytes = sizeof tile.a + sizeof tile.b};
  char why[256] = "";
  if (launch(qcts_problem{}, at, kernel, &tile) != QCTS_OK) last_failure(why, sizeof why);
  EXPECT_STREQ(why, "");
}

int small_integer(int row, int k, int seed) { return (row * 7 + k * 13 + seed * 5) % 9 - 4; }

// The inputs are integers whose sums are exact in every order. Each element of d therefore shows that its row
// met its column.
TEST(ExecutorMatrix, MultipliesRowsByColumns) {
  for (uint32_t schedule = 0; schedule < simt::kSchedules; ++schedule) {
    Tile halves = {}, bytes = {};
    for (int row = 0; row < kM; ++row)
      for (int k = 0; k < kRowBytes; ++k) {
        bytes.a[row][k] = static_cast<uint8_t>(small_integer(row, k, 1));
        if (row < kN) bytes.b[row][k] = static_cast<uint8_t>(small_integer(row, k, 2));
        if (k % 2 != 0) continue;
        const uint16_t a = scalar::f32_to_bf16(static_cast<float>(small_integer(row, k / 2, 1))),
                       b = scalar::f32_to_bf16(static_cast<float>(small_integer(row, k / 2, 2)));
        std::memcpy(&halves.a[row][k], &a, 2);
        if (row < kN) std::memcpy(&halves.b[row][k], &b, 2);
      }
    run_tile(multiply_tile<float, multiply_bf16>, halves, simt::Architecture::ampere, schedule);
    run_tile(multiply_tile<int32_t, multiply_s8>, bytes, simt::Architecture::ampere, schedule);
    for (int row = 0; row < kM; ++row)
      for (int column = 0; column < kN; ++column) {
        int of_halves = 0, of_bytes = 0;
        for (int k = 0; k < 32; ++k) {
          const int product = small_integer(row, k, 1) * small_integer(column, k, 2);
          of_bytes += product;
          if (k < 16) of_halves += product;
        }
        EXPECT_EQ(std::bit_cast<float>(halves.d[row][column]), static_cast<float>(of_halves))
            << row << ", " << column;
        EXPECT_EQ(static_cast<int32_t>(bytes.d[row][column]), of_bytes) << row << ", " << column;
      }
  }
}

void transposes(Tile* tile) {
  const uint32_t lane = lane_index();
  store_shared(shared_memory() + 16 * lane, load_global<Words4>(&tile->a[0][0] + 16 * lane));
  sync_warp();
  uint32_t words[4];
  load_matrices<4, true>(words, shared_memory() + 16 * lane);
  for (uint32_t i = 0; i < 4; ++i) store_global(&tile->d[0][0] + 4 * lane + i, words[i]);
}

TEST(ExecutorMatrix, LoadsTransposed) {
  Tile tile = {};
  for (int i = 0; i < kM * kRowBytes / 2; ++i) {
    const auto value = static_cast<uint16_t>(i);
    std::memcpy(&tile.a[0][0] + 2 * i, &value, 2);
  }
  run_tile(transposes, tile, simt::Architecture::ampere);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      // Row r of matrix i has element 64 * i + 8 * r and the next seven.
      const uint32_t low = 64 * i + 8 * (lane % 4 * 2) + lane / 4;
      EXPECT_EQ(tile.d[lane / 2][lane % 2 * 4 + i], low | (low + 8) << 16) << lane << ", " << i;
    }
}

// Returns the sum of c and the products of bfloat16 numbers.
float sum_of(const simt::SumModel& model, const std::vector<std::pair<float, float>>& products, float c) {
  std::vector<simt::Factor> a, b;
  for (const auto& [x, y] : products) {
    a.push_back(simt::kBf16.decode(scalar::f32_to_bf16(x)));
    b.push_back(simt::kBf16.decode(scalar::f32_to_bf16(y)));
  }
  return simt::fused_dot(model, simt::kBf16, a.data(), b.data(), static_cast<int>(a.size()), c);
}

using Products = std::vector<std::pair<float, float>>;

TEST(ExecutorSums, CutProductsBelowTheLargestExponent) {
  const Products halves(16, {0.5f, 1});
  EXPECT_EQ(sum_of(simt::kAmpereSums16, halves, 0x1p24f), 0x1p24f) << "the unit is 2^(24 - 24)";
  EXPECT_EQ(sum_of(simt::kHopperSums16, halves, 0x1p24f), 0x1p24f + 8) << "the unit is 2^(24 - 25)";
  EXPECT_EQ(sum_of(simt::kAmpereSums16, halves, 0), 8.0f);
  EXPECT_EQ(sum_of(simt::kHopperWideSums8, halves, 0x1p13f), 0x1p13f) << "the unit is 2^(13 - 13)";
}

TEST(ExecutorSums, CutTowardZero) {
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{1.5f, 1}, {1.5f, 1}}, 0x1p24f), 0x1p24f + 2) << "1.5 counts as 1";
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{-1.5f, 1}, {-1.5f, 1}}, -0x1p24f), -0x1p24f - 2);
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{1, 1}, {1, 1}, {1, 1}}, 0x1p24f), 0x1p24f + 2)
      << "the result: 2^24 + 3";
  EXPECT_EQ(sum_of(simt::kHopperWideSums8, {{1, 1}}, 0x1p14f), 0x1p14f)
      << "the result keeps 13 bits: 2^14 + 1";
}

TEST(ExecutorSums, AddEightTermsAtOnceOnAmpereAndSixteenOnHopper) {
  Products products(16, {0, 0});
  products[0] = {0x1p12f, 0x1p13f};    // 2^25
  products[15] = {-0x1p12f, 0x1p13f};  // cancels 2^25; on Ampere only in the second step
  products[1] = products[14] = {1, 1};
  EXPECT_EQ(sum_of(simt::kHopperSums16, products, 0), 2.0f) << "the unit is 1 for all";
  EXPECT_EQ(sum_of(simt::kAmpereSums16, products, 0), 0.0f) << "the unit is 2 in both steps";
}

TEST(ExecutorSums, TakeTheExponentOfAProductWithoutNormalizing) {
  // 1.5 * 1.5 = 2.25 has exponent 0, so 2^-24 is kept.
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{1.5f, 1.5f}, {-1.5f, 1.5f}, {0x1p-12f, 0x1p-12f}}, 0), 0x1p-24f);
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{2, 1.5f}, {-2, 1.5f}, {0x1p-12f, 0x1p-12f}}, 0), 0.0f);
}

TEST(ExecutorSums, KeepSubnormalsAndSpecials) {
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{0x1p-130f, 0x1p-10f}}, 0), 0x1p-140f)
      << "a subnormal factor and result";
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{0x1p-75f, 0x1p-75f}}, 0), 0.0f) << "2^-150 is cut";
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{INFINITY, 1}}, 5), INFINITY);
  EXPECT_EQ(std::bit_cast<uint32_t>(sum_of(simt::kAmpereSums16, {{INFINITY, 0}}, 5)), 0x7FFFFFFFu);
  EXPECT_EQ(std::bit_cast<uint32_t>(sum_of(simt::kAmpereSums16, {{INFINITY, 1}, {-INFINITY, 1}}, 0)),
            0x7FFFFFFFu);
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{0x1p100f, 0x1p100f}}, 0), INFINITY) << "overflow";
}

// Sums that an H100 returned where the model's exponent of zero, -126, does not hold. Each record has c, the
// sum, a row of a and a row of b.
TEST(ExecutorSums, EqualAnH100WhereCIsZero) {
  struct Recorded {
    uint32_t c, want;
    std::vector<uint16_t> a, b;
  };
  for (const Recorded& r : {Recorded{0x80000000,
                                     0x00006900,
                                     {0x9d33, 0x805d, 0x806f, 0x9fd4, 0x9b05, 0x8008, 0x9b5c, 0x9c46, 0x9bc2,
                                      0x9c11, 0x1af5, 0xa051, 0x803c, 0x1ec1, 0x8001, 0x9c19},
                                     {0x807e, 0x9f0a, 0x1eaf, 0x9a0d, 0x1b41, 0x2020, 0x1fb1, 0x1d39, 0xa0bc,
                                      0x8029, 0x801a, 0x1bb4, 0x8061, 0x1a49, 0x0022, 0x1aaa}},
                            Recorded{0x80000000,
                                     0x0000ce60,
                                     {0x0012, 0x9f63, 0x1c56, 0x9f01, 0x19d5, 0x999d, 0x9a78, 0x1abe, 0x1d6a,
                                      0x9b39, 0x9f98, 0x9d7d, 0x9dfd, 0x9a2a, 0x20e1, 0x2176},
                                     {0x1d50, 0x804d, 0x0038, 0x1b07, 0x1fb7, 0x1f12, 0xa124, 0x9cef, 0x9d8c,
                                      0x19ff, 0x9c29, 0x9dd5, 0x9c39, 0x9bef, 0x0033, 0x0028}},
                            Recorded{0x00000000,
                                     0x8009aea0,
                                     {0x807c, 0x20b4, 0x1c28, 0x9ebc, 0x0002, 0x1e4e, 0x9d53, 0x0029, 0x1d1d,
                                      0x1b7d, 0x1e54, 0x99f0, 0x9abf, 0x0047, 0x9de6, 0x1a11},
                                     {0x9d34, 0x9d11, 0x99a6, 0x9aa1, 0x9dd8, 0x8038, 0x1f6d, 0x9d44, 0x9e3b,
                                      0x9ec5, 0x9e6c, 0x198f, 0x9ad6, 0x1d60, 0x0075, 0x0032}},
                            Recorded{0x00000000,
                                     0x800631e7,
                                     {0x1d27, 0x1bb5, 0x1bbf, 0x9f80, 0x8053, 0x001b, 0x8048, 0x9a76, 0x1a32,
                                      0x1ed5, 0x9996, 0x002b, 0x9bc6, 0xa0c4, 0x006c, 0x0072},
                                     {0x9bd7, 0x9f74, 0xa052, 0x1db1, 0x9ce3, 0x006e, 0x9c3d, 0x801d, 0xa144,
                                      0x9dce, 0xa18b, 0x0055, 0x9d2d, 0x1bc9, 0x1cfc, 0x215b}}}) {
    std::vector<simt::Factor> a, b;
    for (const uint16_t bits : r.a) a.push_back(simt::kBf16.decode(bits));
    for (const uint16_t bits : r.b) b.push_back(simt::kBf16.decode(bits));
    const auto sum = [&](const simt::SumModel& model) {
      const int count = static_cast<int>(a.size());
      const float start = std::bit_cast<float>(r.c);
      return std::bit_cast<uint32_t>(simt::fused_dot(model, simt::kBf16, a.data(), b.data(), count, start));
    };
    EXPECT_EQ(sum(simt::kHopperSums16), r.want) << std::hex << r.want;
    simt::SumModel public_model = simt::kHopperSums16;
    public_model.least_exponent = -126;
    EXPECT_NE(sum(public_model), r.want) << std::hex << r.want;
  }
}

TEST(ExecutorSums, TakeTheExponentOfZeroFactorsByTheArchitecture) {
  // In the public model, 0 * 2^93 has exponent -33. The sum is cut below 2^(-33 - F), so 2^-76 is lost.
  for (const auto& zeros :
       {Products{{0, 0x1p93f}, {0x1p-38f, 0x1p-38f}}, Products{{-0x1p93f, -0.0f}, {0x1p-38f, 0x1p-38f}}}) {
    EXPECT_EQ(sum_of(simt::kAmpereSums16, zeros, 0), 0.0f);
    EXPECT_EQ(sum_of(simt::kHopperSums16, zeros, 0), 0x1p-76f);
  }
  EXPECT_EQ(sum_of(simt::kAmpereSums16, {{0, 0x1p93f}}, 0x1p-76f), 0.0f);
  EXPECT_EQ(sum_of(simt::kHopperSums16, {{0, 0x1p93f}}, 0x1p-76f), 0x1p-76f);
}

// The vectors were recorded from MMA-Sim; mma_sim_vectors.txt names its commit and the seed. A line has the
// name of the model, the bits of c, the bits of the sum that the model computed, and the bits of a and b.
TEST(ExecutorSums, EqualMmaSimsBitForBit) {
  struct Named {
    const char* name;
    const simt::SumModel* model;
    const simt::FactorType* type;
  } const models[] = {{"ampere_bf16", &simt::kAmpereSums16, &simt::kBf16},
                      {"ampere_f16", &simt::kAmpereSums16, &simt::kF16},
                      {"hopper_bf16", &simt::kHopperSums16, &simt::kBf16},
                      {"hopper_f16", &simt::kHopperSums16, &simt::kF16},
                      {"hopper_wgmma_e4m3", &simt::kHopperWideSums8, &simt::kE4m3}};
  std::ifstream file(source_path("kernels/emulated/mma_sim_vectors.txt"));
  std::map<std::string, int> seen;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    uint32_t c = 0, want = 0, bits = 0;
    words >> name >> std::hex >> c >> want;
    const Named* named = std::ranges::find_if(models, [&](const Named& each) { return each.name == name; });
    ASSERT_NE(named, std::end(models)) << line;
    std::vector<simt::Factor> factors;
    while (words >> bits) factors.push_back(named->type->decode(bits));
    const size_t count = factors.size() / 2;
    ASSERT_EQ(count, named->type == &simt::kE4m3 ? 32u : 16u) << line;
    const float got = simt::fused_dot(*named->model, *named->type, factors.data(), factors.data() + count,
                                      static_cast<int>(count), std::bit_cast<float>(c));
    EXPECT_EQ(std::bit_cast<uint32_t>(got), want) << line;
    ++seen[name];
  }
  for (const Named& each : models) EXPECT_EQ(seen[each.name], 100) << each.name;
}

}  // namespace
}  // namespace qcts::matrix_tests
