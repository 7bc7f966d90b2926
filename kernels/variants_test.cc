// SPDX-License-Identifier: BSD-3-Clause
// Compares every variant that this machine runs with the scalar one, on shapes that leave tails in every
// loop: dequantize bit for bit, linear within the rounding of float32 sums. Rows and threads must not affect
// each other. The emulated AVX-512 provider takes part if it was built. This is a quick check during
// development; the suites judge in full, against goldens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/variant_problems.h"

namespace qcts {
namespace {

using namespace variants;

float element(uint32_t dtype, const std::vector<uint8_t>& bytes, size_t index) {
  if (dtype == QCTS_F32) {
    float value;
    std::memcpy(&value, &bytes[4 * index], 4);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, &bytes[2 * index], 2);
  if (dtype == QCTS_BF16) {
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  if ((half & 0x7FFF) > 0x7C00) return std::nanf("");
  const float magnitude =
      (half & 0x7C00) == 0 ? std::ldexp(static_cast<float>(half & 0x3FF), -24)
                           : std::ldexp(static_cast<float>((half & 0x3FF) | 0x400), (half >> 10 & 31) - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

const qcts_kernel& scalar_of(const qcts_kernel& kernel) {
  for (const Implementation& other : registry().implementations())
    if (other.kernel->op == kernel.op && std::strcmp(other.kernel->scheme, kernel.scheme) == 0 &&
        std::strcmp(other.kernel->variant, "scalar") == 0)
      return *other.kernel;
  throw std::runtime_error(std::string("no scalar variant of ") + kernel.scheme);
}

// Variants that multiply bfloat16 leave some problems to others: they take mx elements that fit, e2m1 and
// e4m3, and bfloat16 x, unless they declare that they round it.
bool multiplies_bf16(const qcts_kernel& kernel) {
  return (kernel.numerics.flags & QCTS_NUM_FLUSH_SUBNORMALS) != 0;
}
bool declines(const qcts_kernel& kernel, const std::string& member) {
  return multiplies_bf16(kernel) && member.rfind("mx", 0) == 0 && member.rfind("mxfp4", 0) != 0 &&
         member.find("_e4m3") == std::string::npos;
}
bool declines(const qcts_kernel& kernel, uint32_t dtype) {
  const bool takes_bf16 = multiplies_bf16(kernel) || feeds_wgmma_int4(kernel);
  return takes_bf16 && kernel.numerics.x_cast == QCTS_NONE && dtype != QCTS_BF16;
}
bool declines(const qcts_kernel& kernel, const Shape& shape) {
  return feeds_wgmma_int4(kernel) && shape.group % 32 != 0;
}

class Variants : public testing::TestWithParam<size_t> {
 protected:
  const qcts_kernel& kernel() const { return *registry().implementations()[GetParam()].kernel; }
  void SetUp() override {
    const std::string why = registry().implementations()[GetParam()].machine_refusal();
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

constexpr uint32_t kDtypes[] = {QCTS_F32, QCTS_BF16, QCTS_F16};
constexpr Shape kShapes[] = {{1, 1, 8, 8},       {1, 64, 128, 32},  {2, 65, 96, 32},     {3, 130, 264, 24},
                             {4, 63, 1024, 128}, {5, 17, 192, 64},  {13, 100, 320, 160}, {67, 33, 160, 40},
                             {3, 128, 256, 64},  {9, 192, 256, 32}, {53, 66, 576, 64},   {530, 3, 72, 24},
                             {8, 128, 128, 64},  {7, 70, 512, 128}, {2, 65, 768, 64},    {17, 5, 2048, 1024}};

void expect_same_bits(uint32_t dtype, const std::vector<uint8_t>& want, const std::vector<uint8_t>& got) {
  ASSERT_EQ(got.size(), want.size());
  const size_t bytes = dtype == QCTS_F32 ? 4 : 2;
  for (size_t i = 0; i < got.size() / bytes; ++i) {
    if (std::isnan(element(dtype, want, i)) && std::isnan(element(dtype, got, i))) continue;
    ASSERT_EQ(std::memcmp(&got[i * bytes], &want[i * bytes], bytes), 0)
        << "element " << i << ": want " << element(dtype, want, i) << ", got " << element(dtype, got, i);
  }
}

// Both sum in float32 or better. Scales are 1/4 (in 8 bits of e8m0: 2^-2), codes up to 57344, x and bias up
// to 2. If x is first rounded to bfloat16, the errors of 2^-9 in each product mostly cancel.
void expect_close(uint32_t dtype, int64_t k, const qcts_numerics& numerics, const std::vector<uint8_t>& want,
                  const std::vector<uint8_t>& got) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 0;
  const size_t count = got.size() / (dtype == QCTS_F32 ? 4 : 2);
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(double{element(dtype, want, i)}));
  const double narrow = numerics.x_cast == QCTS_BF16 && dtype != QCTS_BF16 ? 0x1p-8 * (largest + 16) : 0;
  const double ulp = dtype == QCTS_F32 ? 0x1p-24 : dtype == QCTS_F16 ? 0x1p-10 : 0x1p-7;
  for (size_t i = 0; i < count; ++i) {
    const double w = element(dtype, want, i), g = element(dtype, got, i);
    if (w == g) continue;
    ASSERT_TRUE(std::fabs(g - w) <=
                ulp * std::fabs(w) + static_cast<double>(k) * 0x1p-24 * largest + 0x1p-24 + narrow)
        << "element " << i << ": want " << w << ", got " << g;
  }
}

TEST_P(Variants, AgreeWithScalar) {
  const qcts_kernel& scalar = scalar_of(kernel());
  for (const std::string& member : members(family_of(kernel()))) {
    int compared = 0;
    for (const Shape& shape : kShapes)
      for (uint32_t dtype : kDtypes) {
        // In schemes with one scale per row, k may have any value.
        Shape cut = shape;
        if (group_of(family_of(kernel()), member, shape) == 0) cut.k -= shape.m % 8;
        SCOPED_TRACE(member + " m " + std::to_string(cut.m) + " n " + std::to_string(cut.n) + " k " +
                     std::to_string(cut.k) + " dtype " + std::to_string(dtype));
        Problem reference(scalar, member, cut, dtype, 1), tried(kernel(), member, cut, dtype, 2);
        if (!reference.is_supported(scalar)) continue;
        const bool declined =
            declines(kernel(), member) || declines(kernel(), dtype) || declines(kernel(), cut);
        ASSERT_EQ(tried.is_supported(kernel()), !declined);
        if (declined) continue;
        ++compared;
        const std::vector<uint8_t> want = reference.run(scalar), got = tried.run(kernel());
        if (kernel().op == QCTS_OP_DEQUANTIZE) {
          ASSERT_NO_FATAL_FAILURE(expect_same_bits(dtype, want, got));
        } else {
          ASSERT_NO_FATAL_FAILURE(expect_close(dtype, cut.k, kernel().numerics, want, got));
        }
      }
    if (!declines(kernel(), member)) {
      EXPECT_GE(compared, 3) << member;
    }
  }
}

class DequantizeVariants : public Variants {};

// Fills parameters with arbitrary bits, or with exponents near each other, or with one of them zero. This
// covers what a float32 sum of a product and a zero loses, values rounded at a tie or to -0, subnormals,
// infinities and NaN.
void scatter(const Problem& problem, uint64_t seed) {
  constexpr uint8_t kMinTop[] = {0x34, 0x00, 0x74};  // top bytes of those near each other
  for (uint32_t i = 0; i < problem.problem.n_planes; ++i) {
    const qcts_plane& plane = problem.planes[i];
    const size_t bytes = dtype_bytes(plane.dtype);
    std::vector<uint8_t> any = random_bytes(problem.buffers[i].size(), seed * kMaxPlanes + i);
    const bool is_float = plane.dtype == QCTS_F32 || plane.dtype == QCTS_F16 || plane.dtype == QCTS_BF16;
    for (size_t at = 0; is_float && seed % 4 != 0 && at < any.size(); at += bytes) {
      uint8_t& top = any[at + bytes - 1];
      top = static_cast<uint8_t>((seed < 4 ? top & 0x80 : 0) | (kMinTop[seed % 4 - 1] + top % 12));
      if (const uint8_t low = any[at]; low % 8 == 0)
        std::memset(&any[at], 0, bytes), top = static_cast<uint8_t>(low << 4 & 0x80);
    }
    // Adjacent blocks whose scales are all positive, which a variant may take together.
    if (seed >= 4 && plane.dtype == QCTS_F8_E4M3FN && std::strcmp(plane.name, "scale") == 0)
      for (uint8_t& byte : any) byte &= 0x7F;
    std::memcpy(const_cast<void*>(plane.data), any.data(), any.size());
  }
}

TEST_P(DequantizeVariants, AgreeWithScalarOnAnyParameters) {
  const qcts_kernel& scalar = scalar_of(kernel());
  for (const std::string& member : members(family_of(kernel())))
    for (const int64_t group : {32, 64, 128})
      for (uint32_t dtype : kDtypes)
        for (uint64_t seed = 0; seed < 8; ++seed) {
          SCOPED_TRACE(member + " group " + std::to_string(group) + " dtype " + std::to_string(dtype) +
                       " seed " + std::to_string(seed));
          const Shape shape = {1, rows_of(member, 67), 9 * group, group};
          Problem reference(scalar, member, shape, dtype, 1), tried(kernel(), member, shape, dtype, 1);
          if (!reference.is_supported(scalar)) continue;
          scatter(reference, seed);
          scatter(tried, seed);
          ASSERT_NO_FATAL_FAILURE(expect_same_bits(dtype, reference.run(scalar), tried.run(kernel())));
        }
}

class LinearVariants : public Variants {};

// Returns y in float32, because bfloat16 hides the order of sums: only row `row` of the shape's m, or all if
// it is -1.
struct RowRange {
  int64_t first = 0, count = 0;  // count 0: all rows
};

std::vector<uint8_t> wide_answer(const qcts_kernel& kernel, const std::string& member, Shape shape,
                                 uint32_t dtype, uint32_t threads, RowRange rows = {}) {
  Problem given(kernel, member, shape, dtype, threads);
  qcts_problem& p = given.problem;
  if (rows.count > 0) {
    p.x = static_cast<const char*>(p.x) + rows.first * p.ldx_bytes;
    p.m = rows.count;
  }
  given.y.assign(static_cast<size_t>(p.m * p.n * 4), 0xFF);
  p.y = given.y.data();
  p.y_dtype = QCTS_F32;
  p.ldy_bytes = p.n * 4;
  return given.run(kernel);
}

// Returns how many of m rows must have the same y without the others. A CUDA kernel multiplies up to four
// rows without tensor cores and more rows with them, or up to 16 of int4 in another frame than more, and
// these round differently.
int64_t rows_alone(const qcts_kernel& kernel, int64_t m) {
  if (!std::string_view(kernel.variant).starts_with("sm")) return 1;
  return m > 16 ? 17 : m > 4 ? 5 : 1;
}

// With one row a thread may read four blocks of columns side by side; two or three of them may have fewer
// columns.
TEST_P(LinearVariants, RowsAndThreadsHaveNoInfluence) {
  bool first = true;
  for (const uint32_t dtype : {uint32_t{QCTS_F32}, uint32_t{QCTS_BF16}}) {
    if (declines(kernel(), dtype)) continue;
    const std::vector<int64_t> some = {3, 66}, all_sizes = {1, 2, 3, 4, 5, 6, 7, 70, 131};
    for (const std::string& member : members(family_of(kernel()))) {
      if (declines(kernel(), member)) continue;
      // k is 320, except for blocks of 128, groups of 256 and nf4, where 256 scalers share a factor.
      const auto has = [&](const char* part) { return member.find(part) != member.npos; };
      const int64_t k = member == "nf4" || has("_g256") || has("_block128") ? 512 : 320;
      for (const int64_t m : first ? all_sizes : some) {
        // with 250 the last block of four is short
        const int64_t n = rows_of(member, m == 3 && member != "nf4" ? 250 : 320);
        const Shape shape = {m, n, k, 64};
        const std::vector<uint8_t> all = wide_answer(kernel(), member, shape, dtype, 1);
        EXPECT_TRUE(wide_answer(kernel(), member, shape, dtype, 3) == all)
            << member << " threads, m " << m << ", dtype " << dtype;
        const int64_t count = rows_alone(kernel(), m);
        for (const int64_t row : {int64_t{0}, (m - count + 1) / 2, m - count}) {
          const std::vector<uint8_t> want(all.begin() + row * n * 4, all.begin() + (row + count) * n * 4);
          EXPECT_TRUE(wide_answer(kernel(), member, shape, dtype, 1, {row, count}) == want)
              << member << " rows from " << row << " of " << m << ", dtype " << dtype;
        }
      }
    }
    first = false;
  }
}

// Makes some of the blocks odd: NaN and infinite codes, NaN and negative scales, and the scale 2^-127.
void make_odd(const Problem& problem) {
  for (uint32_t i = 0; i < problem.problem.n_planes; ++i) {
    const qcts_plane& plane = problem.planes[i];
    const bool scale = std::strcmp(plane.name, "scale") == 0;
    auto* bytes = static_cast<uint8_t*>(const_cast<void*>(plane.data));
    for (size_t at = 0; at < problem.buffers[i].size(); ++at) {
      if (plane.dtype == QCTS_F8_E8M0 && at % 11 == 0) bytes[at] = 0;
      if (plane.dtype == QCTS_F8_E8M0 && at % 101 == 0) bytes[at] = 255;
      if (plane.dtype == QCTS_F8_E4M3FN && scale && at % 7 == 0) bytes[at] |= 0x80;
      if (plane.dtype == QCTS_F8_E4M3FN && at % 1601 == 0) bytes[at] = at % 2 == 0 ? 0x7F : 0xFF;
      if (plane.dtype == QCTS_F8_E5M2 && at % 1601 == 0) bytes[at] = at % 2 == 0 ? 0x7C : 0xFE;
    }
  }
}

class Float8LinearVariants : public Variants {};

TEST_P(Float8LinearVariants, OddCodesAndScalesGoWhereScalarHasThem) {
  for (const std::string& member : members(family_of(kernel())))
    for (const uint32_t dtype : {uint32_t{QCTS_F32}, uint32_t{QCTS_BF16}})
      for (const int64_t m : {1, 2, 9}) {
        if (declines(kernel(), member) || declines(kernel(), dtype)) continue;
        SCOPED_TRACE(member + " m " + std::to_string(m) + " dtype " + std::to_string(dtype));
        const Shape shape = {m, rows_of(member, 70), 512, 0};
        Problem reference(scalar_of(kernel()), member, shape, dtype, 1),
            tried(kernel(), member, shape, dtype, 1);
        make_odd(reference);
        make_odd(tried);
        std::vector<uint8_t> want = reference.run(scalar_of(kernel())), got = tried.run(kernel());
        int nans = 0, finite = 0;
        for (size_t i = 0; i < want.size() / dtype_bytes(dtype); ++i) {
          const float w = element(dtype, want, i), g = element(dtype, got, i);
          ASSERT_EQ(std::isnan(g), std::isnan(w)) << "element " << i << ": want " << w << ", got " << g;
          nans += std::isnan(w);
          finite += std::isfinite(w);
          if (std::isfinite(w)) continue;
          if (!std::isnan(w)) {
            ASSERT_EQ(g, w) << "element " << i;
          }
          std::memset(&want[i * dtype_bytes(dtype)], 0, dtype_bytes(dtype));
          std::memset(&got[i * dtype_bytes(dtype)], 0, dtype_bytes(dtype));
        }
        EXPECT_GT(nans, 0);
        EXPECT_GT(finite, 0);
        ASSERT_NO_FATAL_FAILURE(expect_close(dtype, shape.k, kernel().numerics, want, got));
      }
}

// These differ only in how a code becomes bfloat16.
TEST(PairsVariants, TablesAnswerAsShiftsDo) {
  int runnable = 0;
  for (const Implementation& tables : registry().implementations()) {
    if (std::strcmp(tables.kernel->variant, "avx512vbmi") != 0 || !tables.machine_refusal().empty()) continue;
    ++runnable;
    int compared = 0;
    for (const Implementation& shifts : registry().implementations()) {
      if (std::strcmp(shifts.kernel->variant, "avx512bf16") != 0 || shifts.provider != tables.provider ||
          std::strcmp(shifts.kernel->scheme, tables.kernel->scheme) != 0)
        continue;
      for (const std::string& member : members(family_of(*tables.kernel))) {
        if (declines(*tables.kernel, member)) continue;
        for (const int64_t m : {1, 5, 9, 20}) {
          const Shape shape = {m, 130, 512, 32};
          EXPECT_EQ(wide_answer(*tables.kernel, member, shape, QCTS_BF16, 1),
                    wide_answer(*shifts.kernel, member, shape, QCTS_BF16, 1))
              << tables.provider << " " << member << " m " << m;
          ++compared;
        }
      }
    }
    EXPECT_GT(compared, 0) << tables.provider << " " << tables.kernel->scheme;
  }
  if (runnable == 0) GTEST_SKIP() << "no variant of avx512vbmi, native or emulated";
}

// Returns the implementations of each (op, scheme) that has several variants, since a single kernel has no
// other to agree with.
std::vector<size_t> implementations_of(std::vector<uint32_t> ops) {
  std::vector<size_t> indices;
  const auto all = registry().implementations();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto is_sibling = [&](const Implementation& other) {
      return other.kernel->op == all[i].kernel->op &&
             std::strcmp(other.kernel->scheme, all[i].kernel->scheme) == 0;
    };
    if (std::find(ops.begin(), ops.end(), all[i].kernel->op) != ops.end() &&
        std::count_if(all.begin(), all.end(), is_sibling) > 1)
      indices.push_back(i);
  }
  return indices;
}

std::vector<size_t> fast_dequantizers() {
  std::vector<size_t> indices = implementations_of({QCTS_OP_DEQUANTIZE});
  const auto all = registry().implementations();
  std::erase_if(indices, [&](size_t i) { return std::strcmp(all[i].kernel->variant, "scalar") == 0; });
  return indices;
}

std::vector<size_t> float8_linears() {
  std::vector<size_t> indices = implementations_of({QCTS_OP_LINEAR});
  const auto all = registry().implementations();
  std::erase_if(indices, [&](size_t i) {
    const std::string family = family_of(*all[i].kernel);
    return family != "mx" && family != "nvfp4" && family != "fp8_row" && family != "fp8_sparse24" &&
           family != "fp8";
  });
  return indices;
}

std::string name_of(const testing::TestParamInfo<size_t>& info) {
  const Implementation& implementation = registry().implementations()[info.param];
  const std::string policy = policy_of(*implementation.kernel);
  return std::string(op_name(implementation.kernel->op)) + "_" + family_of(*implementation.kernel) + "_" +
         (policy == "weight_only" ? "" : policy + "_") + implementation.name();
}

INSTANTIATE_TEST_SUITE_P(Kernels, Variants,
                         testing::ValuesIn(implementations_of({QCTS_OP_DEQUANTIZE, QCTS_OP_LINEAR})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Kernels, DequantizeVariants, testing::ValuesIn(fast_dequantizers()), name_of);
INSTANTIATE_TEST_SUITE_P(Kernels, Float8LinearVariants, testing::ValuesIn(float8_linears()), name_of);
INSTANTIATE_TEST_SUITE_P(Kernels, LinearVariants, testing::ValuesIn(implementations_of({QCTS_OP_LINEAR})),
                         name_of);

}  // namespace
}  // namespace qcts
