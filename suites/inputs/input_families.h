// SPDX-License-Identifier: BSD-3-Clause
// The table of input families: which faults each one finds, and for which operations.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "reports/case_id.h"
#include "suites/inputs/synthetic.h"

namespace qcts {

struct InputFamily {
  Generator generator;
  std::string_view hunts;  // the fault of a kernel that fails it
  std::vector<Op> ops;
  bool every_shape = false;  // in bfloat16, weight only: use all shapes of the scheme
  bool every_dtype = false;  // float32 and float16 in addition to bfloat16
  // Skipped in reduced plans and excluded from sampling over schemes: for inputs that take up to a second,
  // and for new inputs that must not change how the others are sampled.
  bool excluded_from_sampling = false;
  size_t max_shapes = 2;  // unless every_shape
};
std::span<const InputFamily> input_families();  // one for each Generator, in its order
const InputFamily& input_family(Generator generator);

}  // namespace qcts
