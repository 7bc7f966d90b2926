// SPDX-License-Identifier: BSD-3-Clause
// Says where the wrong elements of an answer are, if one or two simple traits tell them from the right ones:
// a part of the rows or columns, or values of the input or of the right answer.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "suites/judge/diagnosis/answer_hypotheses.h"

namespace qcts {

struct GridPlace {
  int64_t row = 0, column = 0;
};

// The elements of an answer in rows and columns.
struct WrongGrid {
  int64_t rows = 0, columns = 0;
  std::vector<bool> wrong;  // [rows, columns]
  std::string column_word = "column";
  int64_t group = 0;  // columns that share a scale; 0: all
};

// A phrase that completes "wrong exactly ..." and the elements for which it is true.
struct PlaceTrait {
  std::string name;  // "where x is NaN", "in rows from 256 on"
  std::function<bool(const GridPlace&)> holds;
};

// Returns "wrong exactly where x is NaN" if the trait holds for all wrong elements and for no other, or
// "wrong only in rows from 256 on (507 of 530 such elements)" if at most a third of those that it holds for
// are right. Two traits may be joined. `values` are tried before the parts of the grid. Returns "" if no
// trait does, or if there are fewer than two wrong elements or two right ones.
std::string describe_places(const WrongGrid& grid, std::span<const PlaceTrait> values);

// Describe the wrong elements of y, of quantized planes, and of packed or unpacked planes.
std::string places_in_y(const SeenAnswer& seen);
std::string places_in_planes(const KernelInput& input, const Planes& want, const Planes& got);

}  // namespace qcts
