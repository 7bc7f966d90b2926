// SPDX-License-Identifier: BSD-3-Clause
// Tests that a verdict says where wrong elements are only if that separates them from the right ones.
#include "suites/judge/diagnosis/wrong_places.h"

#include <cmath>

#include <gtest/gtest.h>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

WrongGrid grid_of(int64_t rows, int64_t columns, const std::function<bool(int64_t, int64_t)>& is_wrong) {
  WrongGrid grid{rows, columns, {}};
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) grid.wrong.push_back(is_wrong(row, column));
  return grid;
}

struct Part {
  const char* text;
  std::function<bool(int64_t, int64_t)> is_wrong;
};

class WrongPlaces : public testing::TestWithParam<Part> {};

TEST_P(WrongPlaces, ArePartsOfTheGrid) {
  EXPECT_EQ(describe_places(grid_of(40, 70, GetParam().is_wrong), {}), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Each, WrongPlaces,
    testing::Values(Part{"wrong exactly in rows from 33 on", [](int64_t r, int64_t) { return r >= 33; }},
                    Part{"wrong exactly in columns up to 9", [](int64_t, int64_t c) { return c <= 9; }},
                    Part{"wrong exactly in columns 4 to 6",
                         [](int64_t, int64_t c) { return c >= 4 && c <= 6; }},
                    Part{"wrong exactly in the last row", [](int64_t r, int64_t) { return r == 39; }},
                    Part{"wrong exactly in row 7", [](int64_t r, int64_t) { return r == 7; }},
                    Part{"wrong exactly in every column that is 3 modulo 8",
                         [](int64_t, int64_t c) { return c % 8 == 3; }},
                    Part{"wrong exactly in row 7 and in columns from 60 on",
                         [](int64_t r, int64_t c) { return r == 7 && c >= 60; }},
                    Part{"wrong only in rows from 28 on (790 of 840 such elements)",
                         [](int64_t r, int64_t c) { return r >= 28 && (r * 70 + c) % 1400 >= 610; }},
                    Part{"", [](int64_t r, int64_t c) { return (r * 7919 + c * 104729) % 13 == 5; }},
                    Part{"", [](int64_t r, int64_t c) { return r == 3 && c == 4; }},
                    Part{"", [](int64_t, int64_t) { return true; }}));

TEST(WrongPlacesOfValues, ComeBeforePartsOfTheGrid) {
  const PlaceTrait value{"where x is NaN", [](const GridPlace& p) { return p.row == 7; }};
  EXPECT_EQ(describe_places(grid_of(40, 70, [](int64_t r, int64_t) { return r == 7; }), {&value, 1}),
            "wrong exactly where x is NaN");
}

// Quantizes `values` by int8_row, changes the planes and describes the difference.
std::string places_of(std::vector<double> values, int64_t n, int64_t k,
                      const std::function<void(Planes&, const Planes&)>& change) {
  KernelInput input;
  input.op = Op::quantize;
  input.scheme = find_scheme("int8_row");
  input.weight = {DType::float32, n, k};
  input.x.resize(values.size() * 4);
  for (size_t i = 0; i < values.size(); ++i) store_float(DType::float32, input.x, i, values[i]);
  const Planes want = input.scheme->quantize({DType::float32, n, k, input.x}, kPlain);
  Planes got = want;
  change(got, want);
  return places_in_planes(input, want, got);
}

std::vector<double> ramp(int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<double>(i) * 0.7) * 3);
  return values;
}

TEST(WrongPlacesInPlanes, NameTheCodesByTheirValue) {
  EXPECT_EQ(places_of(ramp(5 * 16), 5, 16,
                      [](Planes& got, const Planes& want) {
                        for (size_t i = 0; i < got[0].bytes.size(); ++i)
                          if (static_cast<int8_t>(want[0].bytes[i]) < 0) got[0].bytes[i] = std::byte{1};
                      }),
            "the codes are wrong exactly where the weight is negative");
}

TEST(WrongPlacesInPlanes, NameTheScalesByTheirRows) {
  std::vector<double> values = ramp(6 * 16);
  for (const size_t row : {1U, 4U}) values[row * 16 + 2] = NAN;
  const std::string text = places_of(values, 6, 16, [](Planes& got, const Planes&) {
    for (const size_t row : {1U, 4U}) store_float(DType::float32, got[1].bytes, row, 5);
  });
  EXPECT_EQ(text, "the scale or zero is wrong exactly where the row has a NaN");
}

TEST(WrongPlacesInPlanes, AreNotNamedWhereNothingTellsThemApart) {
  EXPECT_EQ(places_of(ramp(9 * 16), 9, 16,
                      [](Planes& got, const Planes&) {
                        for (size_t i = 3; i < got[0].bytes.size(); i += 13) got[0].bytes[i] ^= std::byte{1};
                      }),
            "");
}

}  // namespace
}  // namespace qcts
