// Every variant of `linear` on int4 codes, scale 1 and zero 0, where the true answer has no more bits than
// float32: x read back through a weight that takes one element, and the largest sums of codes and x. What
// keeps x in fewer bits than it has, or sums in fewer than they need, is not equal.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/variant_problems.h"

namespace qcts {
namespace {

using namespace variants;

std::vector<Implementation> int4_linears() {
  std::vector<Implementation> found;
  for (const Implementation& each : registry().implementations()) {
    const std::string family = family_of(*each.kernel);
    if (each.kernel->op == QCTS_OP_LINEAR && policy_of(*each.kernel) == "weight_only" &&
        (family == "int4_tinygemm" || family == "int4_plain") && each.machine_refusal().empty())
      found.push_back(each);
  }
  return found;
}

float as_float(uint32_t dtype, uint32_t bits) {
  return std::bit_cast<float>(dtype == QCTS_F32 ? bits : bits << 16);
}

// Codes by (n, k), -8 .. 7, and x by (m, k), in bits of its type; y in float32.
std::vector<float> answer(const Implementation& each, const Shape& shape, uint32_t dtype, auto code, auto x) {
  Problem given(*each.kernel, family_of(*each.kernel), shape, dtype, 2);
  qcts_problem& p = given.problem;
  p.bias = nullptr;
  std::vector<float> y(static_cast<size_t>(p.m * p.n), std::nanf(""));
  p.y = y.data();
  p.y_dtype = QCTS_F32;
  p.ldy_bytes = p.n * 4;
  const bool even_high = std::strcmp(given.planes[0].name, "qdata") == 0 && given.planes[1].ndim == 3;
  auto* codes = static_cast<uint8_t*>(given.planes[0].data);
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; k += 2) {
      const int even = code(n, k), odd = code(n, k + 1);
      codes[(n * p.k + k) / 2] =
          static_cast<uint8_t>(even_high ? (even + 8) << 4 | (odd + 8) : (odd & 15) << 4 | (even & 15));
    }
  const size_t bytes = dtype == QCTS_F32 ? 4 : 2;
  const uint32_t one = dtype == QCTS_F32 ? 0x3F800000 : 0x3F80, zero = 0;
  for (uint32_t i = 1; i < p.n_planes; ++i) {
    const size_t count = given.buffers[i].size() / bytes;
    for (size_t at = 0; at < count; ++at) {
      const bool is_scale = even_high ? at % 2 == 0 : i == 1;
      std::memcpy(&given.buffers[i][at * bytes], is_scale ? &one : &zero, bytes);
    }
  }
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t k = 0; k < p.k; ++k) {
      const uint32_t bits = x(m, k);
      std::memcpy(
          static_cast<char*>(const_cast<void*>(p.x)) + m * p.ldx_bytes + k * static_cast<int64_t>(bytes),
          &bits, bytes);
    }
  if (!given.is_supported(*each.kernel)) return {};
  given.run(*each.kernel);
  return y;
}

// Sizes of x, by exponents: all alike, near each other, as far apart as float32 is wide but for what sums
// would overflow; few of them small, or few large; tiny ones.
constexpr struct {
  const char* name;
  uint32_t least, most;   // exponents
  uint32_t odd;           // one in so many ...
  uint32_t odd_exponent;  // ... has this one
} kSizes[] = {{"alike", 127, 127, 0, 0},       {"near", 120, 127, 0, 0},    {"far", 1, 220, 0, 0},
              {"few_small", 120, 120, 19, 96}, {"few_tiny", 20, 24, 33, 0}, {"outliers", 100, 104, 29, 140},
              {"tiny", 1, 12, 0, 0},           {"subnormal", 0, 0, 0, 0},   {"subnormal_beside", 0, 22, 0, 0},
              {"large", 214, 220, 7, 3}};

uint32_t element_of(uint32_t dtype, size_t size, int64_t m, int64_t k) {
  const auto& of = kSizes[size];
  const uint64_t random = random_bits(static_cast<uint64_t>(m * 8191 + k) + 977 * size);
  const uint32_t exponent = of.odd != 0 && random % of.odd == 0
                                ? of.odd_exponent
                                : of.least + static_cast<uint32_t>(random >> 8) % (of.most - of.least + 1);
  const auto fraction = static_cast<uint32_t>(random >> 40) & 0x7FFFFF,
             sign = static_cast<uint32_t>(random >> 63);
  const uint32_t bits = sign << 31 | exponent << 23 | fraction;
  return dtype == QCTS_F32 ? bits : bits >> 16;
}

// Those that multiply bfloat16 leave other x to their siblings, unless they say that they round it.
bool declines(const Implementation& each, uint32_t dtype) {
  const qcts_numerics& numerics = each.kernel->numerics;
  return (numerics.flags & QCTS_NUM_FLUSH_SUBNORMALS) != 0 && numerics.x_cast == QCTS_NONE &&
         dtype != QCTS_BF16;
}

class Int4Linear : public testing::TestWithParam<int64_t> {};

TEST_P(Int4Linear, ReadsEveryElementOfX) {
  const int64_t m = GetParam();
  for (const Implementation& each : int4_linears())
    for (const Shape& shape : {Shape{m, 70, 192, 32}, Shape{m, 9, 320, 160}, Shape{m, 9, 1024, 512}})
      for (const uint32_t dtype : {uint32_t{QCTS_F32}, uint32_t{QCTS_BF16}})
        for (size_t size = 0; size < std::size(kSizes); ++size) {
          const auto taken = [&](int64_t n) { return (n * 7 + 3) % shape.k; };
          const std::vector<float> y = answer(
              each, shape, dtype, [&](int64_t n, int64_t k) { return k == taken(n) ? 1 : 0; },
              [&](int64_t row, int64_t k) { return element_of(dtype, size, row, k); });
          ASSERT_EQ(y.empty(), declines(each, dtype)) << each.name();
          // Of those that say that they round x, or flush.
          const qcts_numerics& numerics = each.kernel->numerics;
          const bool rounds = numerics.x_cast != QCTS_NONE && dtype == QCTS_F32;
          for (size_t i = 0; !rounds && i < y.size(); ++i) {
            const auto row = static_cast<int64_t>(i) / shape.n, n = static_cast<int64_t>(i) % shape.n;
            const float want = as_float(dtype, element_of(dtype, size, row, taken(n)));
            if ((numerics.flags & QCTS_NUM_FLUSH_SUBNORMALS) != 0 && std::fpclassify(want) == FP_SUBNORMAL)
              continue;
            ASSERT_EQ(y[i], want) << each.name() << ", " << kSizes[size].name << ", k " << shape.k << ", row "
                                  << row << ", column " << n << ", dtype " << dtype;
          }
        }
}

// Codes and x of the largest size for 64 k at a time, of one sign or of both: of all bfloat16 254 / 128 has
// the largest upper byte in 16 bits of fixed point, 127.
TEST_P(Int4Linear, HoldsTheLargestSums) {
  const int64_t m = GetParam();
  for (const Implementation& each : int4_linears())
    for (const int64_t group : {32, 64, 128, 256, 1024})
      for (const uint32_t dtype : {uint32_t{QCTS_F32}, uint32_t{QCTS_BF16}}) {
        const Shape shape{m, 67, 1024, group};
        const auto code = [](int64_t n, int64_t k) { return (k / 64 + n) % 2 == 0 ? -8 : 7; };
        const auto x = [](int64_t row, int64_t k) {
          const int64_t kind = (k / 64 * row + row) % 3;
          return kind == 2 ? 0.0f : kind == 1 ? -254.0f / 128 : 254.0f / 128;
        };
        const std::vector<float> y = answer(each, shape, dtype, code, [&](int64_t row, int64_t k) {
          return std::bit_cast<uint32_t>(x(row, k)) >> (dtype == QCTS_F32 ? 0 : 16);
        });
        ASSERT_EQ(y.empty(), declines(each, dtype)) << each.name() << ", group " << group;
        for (size_t i = 0; i < y.size(); ++i) {
          const auto row = static_cast<int64_t>(i) / shape.n, n = static_cast<int64_t>(i) % shape.n;
          float want = 0;
          for (int64_t k = 0; k < shape.k; ++k) want += x(row, k) * static_cast<float>(code(n, k));
          ASSERT_EQ(y[i], want) << each.name() << ", group " << group << ", row " << row << ", column " << n
                                << ", dtype " << dtype;
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Int4Linear, testing::Values(1, 2, 3, 5, 17, 66),
                         [](const testing::TestParamInfo<int64_t>& info) {
                           return "m" + std::to_string(info.param);
                         });

}  // namespace
}  // namespace qcts
