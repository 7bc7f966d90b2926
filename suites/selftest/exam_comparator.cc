// SPDX-License-Identifier: BSD-3-Clause
// Questions for the comparator.
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/numerics/soft_float.h"
#include "suites/selftest/exam_parts.h"

namespace qcts::selftest {
namespace {

using Elements = std::vector<std::byte>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Elements floats(DType dtype, std::initializer_list<double> values) {
  Elements bytes(values.size() * dtype_bytes(dtype));
  size_t i = 0;
  for (const double value : values) store_float(dtype, bytes, i++, value);
  return bytes;
}

Elements integers(std::initializer_list<int> values) {
  Elements bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

Bounded within(double value, double bound) { return {value, value - bound, value + bound}; }

Planes int8_planes(const Scheme& scheme, int code, double scale) {
  Planes planes = make_planes(scheme.plane_specs({DType::float32, 1, 4}));
  planes[0].bytes[3] = static_cast<std::byte>(code);
  store_float(DType::float32, planes[1].bytes, 0, scale);
  return planes;
}

bool planes_differ(const Parts& parts, const Planes& want, const Planes& got) {
  const Scheme& scheme = *find_scheme("int8_row");
  return parts.planes(scheme, {DType::float32, 1, 4}, kPlain, want, got).has_value();
}

bool nan_in_a_bound(const Parts& parts) {
  const Bounded want[] = {within(1, 0.5)};
  return !parts.bounded(want, DType::float32, floats(DType::float32, {kNan})).equal();
}

bool number_for_a_nan(const Parts& parts) {
  const Bounded want[] = {{kNan, kNan, kNan}};
  return !parts.bounded(want, DType::float32, floats(DType::float32, {1})).equal() &&
         !parts.bitwise(DType::float32, floats(DType::float32, {kNan}), floats(DType::float32, {1})).equal();
}

bool nan_for_a_nan(const Parts& parts) {
  const Bounded want[] = {{kNan, kNan, kNan}};
  return parts.bounded(want, DType::float32, floats(DType::float32, {kNan})).equal() &&
         parts.bitwise(DType::float32, floats(DType::float32, {kNan}), floats(DType::float32, {kNan}))
             .equal();
}

bool last_of_nine(const Parts& parts) {
  std::vector<Bounded> want(9, within(1, 0.5));
  return !parts.bounded(want, DType::float32, floats(DType::float32, {1, 1, 1, 1, 1, 1, 1, 1, 2})).equal() &&
         !parts
              .bitwise(DType::int8, integers({0, 0, 0, 0, 0, 0, 0, 0, 0}),
                       integers({0, 0, 0, 0, 0, 0, 0, 0, 9}))
              .equal();
}

bool lengths(const Parts& parts) {
  const Bounded want[] = {within(1, 0.5), within(1, 0.5)};
  return !parts.bounded(want, DType::float32, floats(DType::float32, {1})).equal() &&
         !parts.bitwise(DType::int8, integers({1, 2}), integers({1})).equal() &&
         !parts.bitwise(DType::int8, integers({1}), integers({1, 2})).equal();
}

bool nothing(const Parts& parts) {
  return !parts.bounded({}, DType::float32, {}).equal() && !parts.bitwise(DType::int8, {}, {}).equal() &&
         planes_differ(parts, {}, {});
}

bool second_plane(const Parts& parts) {
  const Scheme& scheme = *find_scheme("int8_row");
  return planes_differ(parts, int8_planes(scheme, 5, 1.0), int8_planes(scheme, 5, 2.0));
}

bool one_code(const Parts& parts) {
  const Scheme& scheme = *find_scheme("int8_row");
  return planes_differ(parts, int8_planes(scheme, 5, 1.0), int8_planes(scheme, 6, 1.0)) &&
         !parts.bitwise(DType::int8, integers({5}), integers({6})).equal();
}

bool signs_of_zero(const Parts& parts) {
  return !parts.bitwise(DType::float32, floats(DType::float32, {0.0}), floats(DType::float32, {-0.0}))
              .equal();
}

bool unit_of_its_own_type(const Parts& parts) {
  // One unit of float16 is 2^13 units of float32.
  const Bounded want[] = {within(1, 0x1p-23)};
  return !parts.bounded(want, DType::float32, floats(DType::float32, {1 + 0x1p-10})).equal();
}

bool no_bound_at_all(const Parts& parts) {
  const Bounded want[] = {{1, -kInfinity, kInfinity}};
  return !parts.bounded(want, DType::float32, floats(DType::float32, {7})).equal();
}

bool one_bad_among_many(const Parts& parts) {
  std::vector<Bounded> want(1000, within(1, 0.01));
  Elements got(4000);
  for (size_t i = 0; i < 1000; ++i) store_float(DType::float32, got, i, i == 500 ? 2 : 1);
  return !parts.bounded(want, DType::float32, got).equal();
}

bool bounds_stay_apart(const Parts& parts) {
  const std::vector<Bounded> want(6, within(1, 0.1));
  return parts.bounded(want, DType::float32, floats(DType::float32, {1, 1, 1, 1, 1, 1.0625})).equal() &&
         !parts.bounded(want, DType::float32, floats(DType::float32, {1, 1, 1, 1, 1, 1.25})).equal();
}

bool touched(const Parts& parts, std::ptrdiff_t at) {
  GuardedBuffer buffer("y", 8, 0);
  buffer.poison(Poison::nan);
  buffer.data()[at] ^= std::byte{1};
  return parts.violation(buffer).has_value();
}

bool written_behind(const Parts& parts) { return touched(parts, 8) && touched(parts, 8 + 255); }
bool written_before(const Parts& parts) { return touched(parts, -1); }

bool written_between(const Parts& parts) {
  GuardedBuffer buffer("y", 2, 8, 16, 0);
  buffer.poison(Poison::nan);
  buffer.data()[11] ^= std::byte{1};
  return parts.violation(buffer).has_value();
}

bool left_alone(const Parts& parts) {
  GuardedBuffer buffer("y", 8, 0);
  buffer.poison(Poison::nan);
  buffer.data()[7] ^= std::byte{1};
  return !parts.violation(buffer).has_value();
}

constexpr Question kComparatorQuestions[] = {
    {"comparator.nan_within_a_bound", "a NaN passes", nan_in_a_bound},
    {"comparator.number_for_a_nan", "a number passes for an expected NaN", number_for_a_nan},
    {"comparator.nan_for_a_nan", "NaN does not equal NaN", nan_for_a_nan},
    {"comparator.last_of_nine", "the tail is not compared", last_of_nine},
    {"comparator.other_length", "more or fewer elements pass", lengths},
    {"comparator.no_elements", "nothing compared passes", nothing},
    {"comparator.second_plane", "only the first plane is compared", second_plane},
    {"comparator.one_code", "a code one step away passes", one_code},
    {"comparator.signs_of_zero", "-0 passes for +0", signs_of_zero},
    {"comparator.unit_of_its_own_type", "float32 gets the tolerance of float16", unit_of_its_own_type},
    {"comparator.no_bound_at_all", "a bound without limits accepts everything", no_bound_at_all},
    {"comparator.one_bad_among_many", "one bad element among many is missed", one_bad_among_many},
    {"comparator.bounds_stay_apart", "an element passes with another's tolerance", bounds_stay_apart},
    {"comparator.written_behind", "a write past a buffer is not detected", written_behind},
    {"comparator.written_before", "a write before a buffer is not detected", written_before},
    {"comparator.written_between", "a write between rows is not detected", written_between},
    {"comparator.left_alone", "a write inside a buffer is reported", left_alone},
};

}  // namespace

std::span<const Question> comparator_questions() { return kComparatorQuestions; }

}  // namespace qcts::selftest
