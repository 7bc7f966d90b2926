// SPDX-License-Identifier: BSD-3-Clause
// Tests every variant of `linear` on codes that are small integers, with scale 1 and floating-point zero 0,
// where float32 holds the true answer: x is read back through a weight that selects one element, and the
// largest sums of codes and x are tried. A kernel that keeps too few bits of x or of its sums is not equal.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/variant_problems.h"

namespace qcts {
namespace {

using namespace variants;

// int4_int32 keeps its codes in int32, and int4_e4m3 means floats: neither has a kernel in fixed point.
bool has_nibbles(const Implementation& each) {
  const std::string family = family_of(*each.kernel);
  return family.starts_with("int4") && family != "int4_int32" && family != "int4_e4m3";
}

std::vector<Implementation> integer_linears() {
  std::vector<Implementation> found;
  for (const Implementation& each : registry().implementations()) {
    const std::string family = family_of(*each.kernel);
    if (each.kernel->op == QCTS_OP_LINEAR && policy_of(*each.kernel) == "weight_only" &&
        (has_nibbles(each) || family == "int8_row" || family == "tinyq") && each.machine_refusal().empty())
      found.push_back(each);
  }
  return found;
}

float as_float(uint32_t dtype, uint32_t bits) {
  return std::bit_cast<float>(dtype == QCTS_F32 ? bits : bits << 16);
}

// Zero points by n, which span int8's range if the scheme has zero points.
using Zeros = std::array<int, 3>;
Zeros zeros_of(const Implementation& each) {
  return family_of(*each.kernel) == "int8_row" ? Zeros{0, 127, -128} : Zeros{};
}

// Writes scales of 1, zeros of 0, and codes by (n, k).
void fill_plane(const Implementation& each, const qcts_problem& p, const qcts_plane& plane, uint8_t* to,
                auto code) {
  const std::string name = plane.name;
  if (name == "int8_weights" || (name == "qdata" && !has_nibbles(each))) {
    for (int64_t n = 0; n < p.n; ++n)
      for (int64_t k = 0; k < p.k; ++k) *to++ = static_cast<uint8_t>(code(n, k));
  } else if (name == "qdata") {
    const bool even_high = family_of(*each.kernel) == "int4_tinygemm";
    for (int64_t i = 0; i < p.n * p.k; i += 2) {
      const int even = code(i / p.k, i % p.k), odd = code(i / p.k, i % p.k + 1);
      to[i / 2] =
          static_cast<uint8_t>(even_high ? (even + 8) << 4 | (odd + 8) : (odd & 15) << 4 | (even & 15));
    }
  } else if (plane.dtype == QCTS_I8) {
    for (int64_t n = 0; n < p.n; ++n) to[n] = static_cast<uint8_t>(zeros_of(each)[n % 3]);
  } else {
    const uint32_t bytes = dtype_bytes(plane.dtype), one = plane.dtype == QCTS_F32 ? 0x3F800000 : 0x3F80;
    size_t count = 1;
    for (uint32_t d = 0; d < plane.ndim; ++d) count *= static_cast<size_t>(plane.shape[d]);
    for (size_t i = 0; i < count; ++i) {
      const bool is_scale = name == "scale_and_zero" ? i % 2 == 0 : name.starts_with("scale");
      const uint32_t value = is_scale ? one : 0;
      std::memcpy(to + i * bytes, &value, bytes);
    }
  }
}

// Takes x by (m, k), as bits of its dtype; returns y in float32, or nothing if the kernel declines.
std::vector<float> answer(const Implementation& each, const Shape& shape, uint32_t dtype, auto code, auto x) {
  Problem given(*each.kernel, family_of(*each.kernel), shape, dtype, 2);
  qcts_problem& p = given.problem;
  p.bias = nullptr;
  std::vector<float> y(static_cast<size_t>(p.m * p.n), std::nanf(""));
  p.y = y.data();
  p.y_dtype = QCTS_F32;
  p.ldy_bytes = p.n * 4;
  for (uint32_t i = 0; i < p.n_planes; ++i)
    fill_plane(each, p, given.planes[i], given.buffers[i].data(), code);
  const size_t bytes = dtype == QCTS_F32 ? 4 : 2;
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

// Magnitudes of x, by exponents: all alike; near each other; as far apart as float32 allows without
// overflowing sums; a few small ones; a few large ones; tiny ones.
constexpr struct {
  const char* name;
  uint32_t min, max;      // exponents
  uint32_t odd;           // one in so many ...
  uint32_t odd_exponent;  // ... has this exponent
} kSizes[] = {{"alike", 127, 127, 0, 0},       {"near", 120, 127, 0, 0},    {"far", 1, 220, 0, 0},
              {"few_small", 120, 120, 19, 96}, {"few_tiny", 20, 24, 33, 0}, {"outliers", 100, 104, 29, 140},
              {"tiny", 1, 12, 0, 0},           {"subnormal", 0, 0, 0, 0},   {"subnormal_beside", 0, 22, 0, 0},
              {"large", 214, 220, 7, 3}};

uint32_t element_of(uint32_t dtype, size_t size, int64_t m, int64_t k) {
  const auto& of = kSizes[size];
  const uint64_t random = random_bits(static_cast<uint64_t>(m * 8191 + k) + 977 * size);
  const uint32_t exponent = of.odd != 0 && random % of.odd == 0
                                ? of.odd_exponent
                                : of.min + static_cast<uint32_t>(random >> 8) % (of.max - of.min + 1);
  const auto fraction = static_cast<uint32_t>(random >> 40) & 0x7FFFFF,
             sign = static_cast<uint32_t>(random >> 63);
  const uint32_t bits = sign << 31 | exponent << 23 | fraction;
  return dtype == QCTS_F32 ? bits : bits >> 16;
}

// Variants that multiply bfloat16 decline other dtypes of x, unless they declare that they round it.
bool declines(const Implementation& each, uint32_t dtype) {
  const qcts_numerics& numerics = each.kernel->numerics;
  const bool takes_bf16 = (numerics.flags & QCTS_NUM_FLUSH_SUBNORMALS) != 0 || feeds_wgmma_int4(*each.kernel);
  return takes_bf16 && numerics.x_cast == QCTS_NONE && dtype != QCTS_BF16;
}

// Returns the most that a sum of x times codes, all but one of them 0, may lose. A tensor core counts a
// product with zero as 2^-126 times the other factor, and cuts all products relative to the largest.
double largest_loss(const Implementation& each, const Shape& shape, uint32_t dtype, size_t size,
                    int64_t row) {
  const qcts_fused_sums& fused = each.kernel->fused_sums;
  if (fused.terms == 0) return 0;
  double largest = 0;
  for (int64_t k = 0; k < shape.k; ++k)
    largest = std::max(largest, std::fabs(double{as_float(dtype, element_of(dtype, size, row, k))}));
  return static_cast<double>(fused.terms + 1) *
         std::ldexp(largest, -126 - static_cast<int>(fused.fraction_bits));
}

class FixedLinear : public testing::TestWithParam<int64_t> {};

// Selects the last element, and others of every group and part. A single row is also tried with ten blocks of
// columns, of which a thread reads four side by side.
TEST_P(FixedLinear, ReadsElementsOfX) {
  const int64_t m = GetParam(), columns = m == 1 ? 580 : 9;
  const Shape groups[] = {{m, 70, 192, 32}, {m, columns, 320, 160}, {m, 9, 1024, 512}},
              rows[] = {{m, 70, 203, 0}, {m, columns, 515, 0}, {m, 9, 1024, 0}};
  for (const Implementation& each : integer_linears())
    for (const Shape& shape : has_nibbles(each) ? groups : rows)
      for (const uint32_t dtype : {uint32_t{QCTS_F32}, uint32_t{QCTS_BF16}})
        for (size_t size = 0; size < std::size(kSizes); ++size) {
          const Zeros zeros = zeros_of(each);
          const auto taken = [&](int64_t n) { return shape.k - 1 - n * (shape.k * 5 / 13) % shape.k; };
          // One code is 1 and all others are 0.
          const auto code = [&](int64_t n, int64_t k) {
            const int zero = zeros[n % 3];
            return k != taken(n) ? zero : zero == 127 ? 126 : zero + 1;
          };
          const std::vector<float> y = answer(each, shape, dtype, code, [&](int64_t row, int64_t k) {
            return element_of(dtype, size, row, k);
          });
          ASSERT_EQ(y.empty(), declines(each, dtype)) << each.name();
          // Kernels that declare that they round x, or flush.
          const qcts_numerics& numerics = each.kernel->numerics;
          const bool rounds = numerics.x_cast != QCTS_NONE && dtype == QCTS_F32;
          for (size_t i = 0; !rounds && i < y.size(); ++i) {
            const auto row = static_cast<int64_t>(i) / shape.n, n = static_cast<int64_t>(i) % shape.n;
            const float x = as_float(dtype, element_of(dtype, size, row, taken(n)));
            const float want = zeros[n % 3] == 127 ? -x : x;
            if ((numerics.flags & QCTS_NUM_FLUSH_SUBNORMALS) != 0 && std::fpclassify(want) == FP_SUBNORMAL)
              continue;
            const double lost = largest_loss(each, shape, dtype, size, row);
            ASSERT_LE(std::fabs(double{y[i]} - want), lost)
                << each.name() << ", " << kSizes[size].name << ", k " << shape.k << ", row " << row
                << ", column " << n << ", dtype " << dtype;
          }
        }
}

// Codes and x have the largest magnitude, with one sign for all k or for 64 at a time, and zero points are at
// the opposite end. Among all bfloat16, 254 / 128 has the largest upper byte in 16 bits of fixed point, 127.
// k is as large as float sums stay exact: 512 products of 255 and 127.
TEST_P(FixedLinear, HoldsTheLargestSums) {
  const int64_t m = GetParam();
  for (const Implementation& each : integer_linears())
    for (const int64_t group :
         has_nibbles(each) ? std::vector<int64_t>{32, 64, 128, 256, 1024} : std::vector<int64_t>{0})
      for (const uint32_t dtype : {uint32_t{QCTS_F32}, uint32_t{QCTS_BF16}}) {
        const Shape shape{m, 67, has_nibbles(each) ? 1024 : 512, group};
        const int max = has_nibbles(each) ? 7 : 127;
        const Zeros zeros = zeros_of(each);
        const auto code = [&](int64_t n, int64_t k) {
          return (k / 64 * (n / 3 % 2) + n) % 2 == 0 ? -max - 1 : max;
        };
        // One row with one sign for all k, one that changes it every 64 k, and one of zeros between them.
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
          double want = 0;
          for (int64_t k = 0; k < shape.k; ++k)
            want += static_cast<double>(x(row, k)) * (code(n, k) - zeros[n % 3]);
          ASSERT_EQ(y[i], want) << each.name() << ", group " << group << ", row " << row << ", column " << n
                                << ", dtype " << dtype;
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Kernels, FixedLinear, testing::Values(1, 2, 3, 5, 17, 66),
                         [](const testing::TestParamInfo<int64_t>& info) {
                           return "m" + std::to_string(info.param);
                         });

}  // namespace
}  // namespace qcts
