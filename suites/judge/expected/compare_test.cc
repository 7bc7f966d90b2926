// SPDX-License-Identifier: BSD-3-Clause
// Tests of the tester: a comparison that accepts one of these would accept a wrong kernel.
#include "suites/judge/expected/compare.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kQuietNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::byte> floats(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) store_float(dtype, bytes, i, values[i]);
  return bytes;
}

template <typename T>
std::vector<std::byte> raw(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(CompareBitwise, EqualElementsAreEqual) {
  const auto bytes = floats(DType::bfloat16, {1, -2, 0.5});
  const Comparison compared = compare_bitwise(DType::bfloat16, bytes, bytes);
  EXPECT_TRUE(compared.equal());
  EXPECT_EQ(compared.total, 3u);
}

TEST(CompareBitwise, NoElementsIsNotAPass) {
  const Comparison compared = compare_bitwise(DType::float32, {}, {});
  EXPECT_FALSE(compared.equal());
  EXPECT_FALSE(compared.problem.empty());
}

TEST(CompareBitwise, UnequalLengthsAreNotComparedByTheirCommonPart) {
  const auto three = floats(DType::float32, {1, 2, 3}), two = floats(DType::float32, {1, 2});
  EXPECT_FALSE(compare_bitwise(DType::float32, three, two).equal());
  EXPECT_FALSE(compare_bitwise(DType::float32, two, three).equal());
}

TEST(CompareBitwise, NanEqualsNanWhateverItsPayloadAndSign) {
  EXPECT_TRUE(compare_bitwise(DType::bfloat16, raw<uint16_t>({0x7fc0}), raw<uint16_t>({0xff81})).equal());
  EXPECT_TRUE(compare_bitwise(DType::float8_e4m3fn, raw<uint8_t>({0x7f}), raw<uint8_t>({0xff})).equal());
  EXPECT_FALSE(compare_bitwise(DType::bfloat16, raw<uint16_t>({0x7fc0}), raw<uint16_t>({0x7f80})).equal())
      << "infinity is not NaN";
  EXPECT_FALSE(compare_bitwise(DType::int16, raw<uint16_t>({0x7fc0}), raw<uint16_t>({0xff81})).equal())
      << "integers have no NaN";
}

TEST(CompareBitwise, SignOfZeroCounts) {
  const Comparison compared =
      compare_bitwise(DType::float32, floats(DType::float32, {0.0}), floats(DType::float32, {-0.0}));
  EXPECT_EQ(compared.differing, 1u);
  EXPECT_EQ(compared.got, "0x80000000 (-0)");
}

TEST(CompareBitwise, NamesTheFirstDifferenceAndCountsAll) {
  const Comparison compared =
      compare_bitwise(DType::uint8, raw<uint8_t>({1, 2, 3, 4}), raw<uint8_t>({1, 9, 3, 8}));
  EXPECT_EQ(compared.first, 1u);
  EXPECT_EQ(compared.differing, 2u);
  EXPECT_EQ(compared.want, "0x02");
  EXPECT_EQ(compared.got, "0x09");
}

TEST(CompareBounded, EveryElementAnswersForItself) {
  // Errors of half a bound in ten elements do not add up, and an error of three bounds in one is not averaged
  // away.
  std::vector<Bounded> want(10, Bounded{1, 0.5, 1.5});
  EXPECT_TRUE(
      compare_bounded(want, DType::float32, floats(DType::float32, std::vector<double>(10, 1.25))).equal());
  std::vector<double> one_wrong(10, 1.0);
  one_wrong[7] = 2.5;
  const BoundedComparison compared = compare_bounded(want, DType::float32, floats(DType::float32, one_wrong));
  EXPECT_EQ(compared.differing, 1u);
  EXPECT_EQ(compared.first, 7u);
  EXPECT_DOUBLE_EQ(compared.worst, 3.0);
}

TEST(CompareBounded, TheEndsBelongToTheInterval) {
  const Bounded want{1, 0.5, 1.5};
  for (const double got : {0.5, 1.5})
    EXPECT_TRUE(compare_bounded({&want, 1}, DType::float64, floats(DType::float64, {got})).equal());
  for (const double got : {std::nextafter(0.5, 0), std::nextafter(1.5, 2)})
    EXPECT_FALSE(compare_bounded({&want, 1}, DType::float64, floats(DType::float64, {got})).equal());
}

TEST(CompareBounded, SaysWhatWasWanted) {
  const auto wanted = [](Bounded want) {
    return compare_bounded({&want, 1}, DType::float32, floats(DType::float32, {-7.0})).want;
  };
  EXPECT_EQ(wanted({1, 0.5, 1.5}), "1 within [0.5, 1.5]");
  EXPECT_EQ(wanted({0.451070219, 0.451171875, 0.451171875}), "0.451171875 (rounded from 0.451070219)");
  EXPECT_EQ(wanted({2, 2, 2}), "2");
  EXPECT_EQ(wanted({kQuietNan, kQuietNan, kQuietNan}), "nan");
}

struct SpecialCase {
  Bounded want;
  double got;
  bool passes;
};

class CompareBoundedSpecial : public testing::TestWithParam<SpecialCase> {};

TEST_P(CompareBoundedSpecial, NonFinite) {
  const SpecialCase& c = GetParam();
  EXPECT_EQ(compare_bounded({&c.want, 1}, DType::float32, floats(DType::float32, {c.got})).equal(), c.passes);
}

INSTANTIATE_TEST_SUITE_P(Values, CompareBoundedSpecial,
                         testing::Values(SpecialCase{{1, 0, 2}, kQuietNan, false},
                                         SpecialCase{{kQuietNan, kQuietNan, kQuietNan}, kQuietNan, true},
                                         SpecialCase{{kQuietNan, kQuietNan, kQuietNan}, 1, false},
                                         SpecialCase{{kInfinity, kQuietNan, kQuietNan}, kInfinity, true},
                                         SpecialCase{{kInfinity, kQuietNan, kQuietNan}, -kInfinity, false},
                                         SpecialCase{{kInfinity, kQuietNan, kQuietNan}, 3e38, false},
                                         SpecialCase{{1, 0, 2}, kInfinity, false},
                                         SpecialCase{{3e38, 2e38, kInfinity}, kInfinity, true},
                                         SpecialCase{{3e38, 2e38, kInfinity}, -kInfinity, false},
                                         SpecialCase{{1, kQuietNan, 2}, 1, false},
                                         SpecialCase{{1, -kInfinity, kInfinity}, 1, false},
                                         SpecialCase{{1, 2, 0}, 1, false}));

// float16 sums may overflow on the way to one output but not on the way to its neighbour.
TEST(CompareBounded, HoldsIfBoundedElementsHoldAndThereIsOne) {
  const Bounded near{1, 0, 2}, any{70000, -kInfinity, kInfinity}, broken{1, kQuietNan, 2};
  const auto holds = [](std::vector<Bounded> want, std::vector<double> got) {
    return compare_bounded(want, DType::float32, floats(DType::float32, got)).holds();
  };
  EXPECT_TRUE(holds({near, near}, {0, 2}));
  EXPECT_TRUE(holds({any, near}, {kInfinity, 1}));
  EXPECT_TRUE(holds({any, near}, {kQuietNan, 1}));
  EXPECT_FALSE(holds({any, near}, {kInfinity, 3}));
  EXPECT_FALSE(holds({any, any}, {1, 1}));
  EXPECT_FALSE(holds({broken, near}, {1, 1}));
  EXPECT_FALSE(holds({near, near}, {1}));
  EXPECT_FALSE(holds({}, {}));
}

TEST(CompareBounded, NoElementsAndUnequalLengthsAreNotAPass) {
  EXPECT_FALSE(compare_bounded({}, DType::float32, {}).equal());
  const Bounded want{1, 0, 2};
  EXPECT_FALSE(compare_bounded({&want, 1}, DType::float32, floats(DType::float32, {1, 1})).equal());
  EXPECT_FALSE(compare_bounded({&want, 1}, DType::int8, raw<uint8_t>({1})).equal());
}

TEST(ComparePlanes, NamesPlaneAndPlaceInTheSchemesTerms) {
  const Scheme& scheme = *find_scheme("int4_tinygemm_g32");
  const WeightShape shape{DType::bfloat16, 24, 128};
  const Planes want = make_planes(scheme.plane_specs(shape));
  Planes got = want;
  // scale_and_zero is [groups, n, 2], two bytes each: group 3, row 17, the scale.
  got[1].bytes[(3 * 24 + 17) * 4] = std::byte{1};
  const std::optional<Mismatch> mismatch = compare_planes(scheme, shape, kPlain, want, got);
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_TRUE(mismatch->where.starts_with("scale_and_zero: group 3, column 17")) << mismatch->where;
  EXPECT_EQ(mismatch->want, "0x0000");
  EXPECT_EQ(mismatch->got, "0x0001");
  EXPECT_EQ(mismatch->count, 1u);
  EXPECT_FALSE(compare_planes(scheme, shape, kPlain, want, want).has_value());
}

TEST(ComparePlanes, NamesShapesAndDtypesAreCompared) {
  const Scheme& scheme = *find_scheme("int8_row");
  const WeightShape shape{DType::bfloat16, 2, 2};
  const Planes want = make_planes(scheme.plane_specs(shape));
  Planes renamed = want, retyped = want, reshaped = want, fewer = want;
  renamed[0].name = "codes";
  retyped[0].dtype = DType::uint8;
  reshaped[1].shape = {1, 2};
  fewer.pop_back();
  for (const Planes& got : {renamed, retyped, reshaped, fewer, Planes{}})
    EXPECT_TRUE(compare_planes(scheme, shape, kPlain, want, got).has_value());
  EXPECT_TRUE(compare_planes(scheme, shape, kPlain, {}, {}).has_value())
      << "comparing no planes must not pass";
}

class Sensitivity : public testing::TestWithParam<DType> {};

TEST_P(Sensitivity, TheSmallestChangeOfAnyValueIsSeen) {
  const size_t bytes = dtype_bytes(GetParam());
  for (unsigned pattern = 0; pattern < 256; ++pattern) {
    std::vector<std::byte> element(bytes, std::byte{static_cast<uint8_t>(pattern)});
    EXPECT_TRUE(bitwise_is_sensitive(GetParam(), element, 0))
        << dtype_name(GetParam()) << " pattern " << pattern;
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Sensitivity,
                         testing::Values(DType::float32, DType::float64, DType::float16, DType::bfloat16,
                                         DType::float8_e4m3fn, DType::float8_e5m2, DType::int8, DType::uint8,
                                         DType::int32));

}  // namespace
}  // namespace qcts
