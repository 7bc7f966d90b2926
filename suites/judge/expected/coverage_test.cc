// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/expected/coverage.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

using CoverageJson = nlohmann::ordered_json;

TestVector quantize_test_vector(const char* scheme, int64_t n, int64_t k, std::span<const float> w) {
  TestVector test_vector;
  test_vector.input.op = Op::quantize;
  test_vector.input.scheme = find_scheme(scheme);
  test_vector.input.weight = {DType::float32, n, k};
  const std::span<const std::byte> bytes = std::as_bytes(w);
  test_vector.input.x.assign(bytes.begin(), bytes.end());
  test_vector.expected.planes = test_vector.input.scheme->quantize({DType::float32, n, k, bytes});
  return test_vector;
}

TestVector read_back(const TestVector& written) {
  TestVector test_vector = written;
  test_vector.input.op = Op::dequantize;
  test_vector.input.planes = std::move(test_vector.expected.planes);
  test_vector.expected = {};
  test_vector.input.x.clear();
  return test_vector;
}

Verdict saying(const CoverageJson& coverage) {
  Verdict verdict;
  verdict.coverage = coverage;
  return verdict;
}

// 127.5 * 2^-1 gives the scale 2^-1: 1.25 lies between codes 2 and 3, 3.0 is code 6.
constexpr std::array<float, 4> kRow = {63.75f, 1.25f, 3.0f, -0.0f};

// Codes, halfway points, scale exponents and special values are recorded exactly where they occur.
TEST(Coverage, SeesCodesHalvesScalesAndSpecials) {
  const TestVector test_vector = quantize_test_vector("int8_row", 1, 4, kRow);
  const ValueCoverage coverage = coverage_of(test_vector);
  EXPECT_EQ(coverage.codes_written, (std::set<int>{0, 2, 6, 127}));
  // Indices count from code -128: 128 + 2 is between 2 and 3; 127.5 has no code above it.
  EXPECT_EQ(coverage.halfway, (std::set<int>{128 + 2}));
  EXPECT_EQ(coverage.exponents, (std::map<std::string, std::set<int>>{{"float32", {-1}}}));
  EXPECT_EQ(coverage.weights, (std::set<std::string>{"-zero"}));
  EXPECT_EQ(coverage.k_mod_32, (std::set<int>{4}));
  EXPECT_TRUE(coverage.codes_read.empty());
  const ValueCoverage read = coverage_of(read_back(test_vector));
  EXPECT_EQ(read.codes_read, coverage.codes_written);
  EXPECT_TRUE(read.codes_written.empty());
  EXPECT_TRUE(read.halfway.empty());
}

// A process reports each value once, and a case with many variants counts once.
TEST(Coverage, SaysOnlyWhatIsNew) {
  const TestVector test_vector = quantize_test_vector("int8_row", 1, 4, kRow);
  CoverageLog log;
  const CoverageJson first = log.note("a", test_vector);
  ASSERT_TRUE(first.is_object());
  EXPECT_EQ(first["of"], "int8_row");
  EXPECT_TRUE(log.note("a", test_vector).is_null());
  EXPECT_TRUE(log.note("b", test_vector).is_null());
  const CoverageJson read = log.note("c", read_back(test_vector));
  EXPECT_TRUE(read["new"].contains("codes_read"));
  EXPECT_FALSE(read["new"].contains("exponents"));
}

// The coverage section does not depend on the order of workers and shards, and it names what is missing.
TEST(Coverage, JoinsInAnyOrderAndNamesHoles) {
  const std::array<float, 4> other = {-63.75f, 0.5f, 5.25f, 0.0f};
  CoverageLog one, two;
  const Verdict a = saying(one.note("a", quantize_test_vector("int8_row", 1, 4, kRow)));
  const Verdict b = saying(two.note("b", quantize_test_vector("int8_row", 1, 4, other)));
  const CoverageJson section = coverage_json(std::array{a, b});
  EXPECT_EQ(section, coverage_json(std::array{b, a}));
  ASSERT_EQ(section.size(), 1u);
  EXPECT_EQ(section[0]["codes_written"]["hit"], 7);  // -128 or -127, 0, 1, 2, 6, 10, 127
  EXPECT_EQ(section[0]["codes_written"]["of"], 256);
  const CoverageJson holes = section[0]["codes_written"]["holes"];
  EXPECT_NE(std::find(holes.begin(), holes.end(), "3 to 5"), holes.end()) << holes;
  EXPECT_EQ(section[0]["halfway"]["hit"], 3);  // 2.5, 10.5, -127.5
  EXPECT_EQ(section[0]["special_inputs"], (CoverageJson{"-zero", "zero"}));
  EXPECT_TRUE(coverage_json(std::array{Verdict()}).empty());
}

// The codes read from each scheme's planes agree with its own decoding: the code that exact_row uses is the
// recorded one minus the integer zero point that a block shares.
TEST(Coverage, CodesOfEverySchemeAreThoseOfItsMeaning) {
  for (const Scheme* scheme : schemes()) {
    const CodeSet codes = scheme->codes();
    if (codes.values.empty() || !codes.fixed) continue;
    SCOPED_TRACE(scheme->name());
    WeightShape shape{DType::bfloat16, 8, 256};
    if (scheme->refusal(shape)) shape.n = 128;  // blocks of 128 x 128
    if (scheme->refusal(shape)) shape = {DType::float32, 8, 256};
    ASSERT_FALSE(scheme->refusal(shape));
    std::vector<std::byte> w(static_cast<size_t>(shape.n * shape.k) * dtype_bytes(shape.dtype));
    for (size_t i = 0; i < static_cast<size_t>(shape.n * shape.k); ++i)
      store_float(shape.dtype, w, i, i % 4 < 2 ? static_cast<double>(i * 7 % 61) - 30.0 : 0.0);
    const Planes planes = scheme->quantize({shape.dtype, shape.n, shape.k, w});
    std::vector<int> row(static_cast<size_t>(shape.k));
    std::vector<ExactWeight> exact(row.size());
    scheme->row_codes(planes, shape, 5, row);
    scheme->exact_row(planes, shape, 5, exact);
    const size_t group = static_cast<size_t>(scheme->group() ? scheme->group() : shape.k);
    std::set<int> distinct;
    for (size_t k = 0; k < row.size(); ++k) {
      if (row[k] < 0) continue;
      distinct.insert(row[k]);
      const size_t first = k / group * group;
      if (row[first] < 0) continue;
      const double offset = codes.values[static_cast<size_t>(row[first])] - exact[first].code;
      EXPECT_EQ(codes.values[static_cast<size_t>(row[k])] - offset, exact[k].code) << k;
    }
    EXPECT_GT(distinct.size(), codes.values.size() > 4 ? 3u : 0u);
  }
}

}  // namespace
}  // namespace qcts
