// SPDX-License-Identifier: BSD-3-Clause
// Problems that a kernel serves in addition to a case's and that differ from it in one respect: what it keeps
// from one must not reach another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "suites/cases/case.h"

namespace qcts {

struct Neighbour {
  Case asked;             // has synthetic input of noise; another kernel serves it if its operation differs
  std::string what;       // "the scheme mxfp8_e4m3_floor", "float32"
  std::string_view kept;  // what a kernel has kept that confuses the two: "the scheme", "the dtype"
  bool has_no_bias = false;  // the case's own problem without its bias
};

// Returns such problems for a case of noise: other schemes of its family that differ in their codes, groups
// or rounding, another dtype and shape, two policies, no bias, and the scheme's other operations. The
// provider may refuse some.
std::vector<Neighbour> neighbours_of(const Case& c);

// Has the case the first of its scheme's ordinary shapes (suites/inputs/input_shapes.h)?
bool is_first_shape(const Case& c);

// Returns the case with noise of another shape as its input, and with as many rows of x if it has any.
Case with_noise_of(const Case& c, const WeightShape& shape, int64_t rows_of_x);

}  // namespace qcts
