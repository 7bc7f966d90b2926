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
  std::string_view hunts;  // the fault of a kernel that fails on it
  std::vector<Op> ops;
  bool every_shape = false;  // in bfloat16 and weight_only, use all shapes of the scheme
  bool every_dtype = false;  // use float32 and float16 in addition to bfloat16
  // One shape is also asked in the dtypes that the family leaves out.
  bool is_asked_in_each_dtype = false;
  // Skipped in reduced plans and excluded from sampling over schemes.
  // The flag is for inputs that take up to a second.
  // The flag is also for new inputs that must not change how the others are sampled.
  bool excluded_from_sampling = false;
  size_t max_shapes = 2;  // applies unless every_shape is set
  // Also used for a linear that reads a packed layout. Its sums are those of "plain", so its inputs are the
  // ones that show a code, a scale or an x in a wrong place, and the ends of m, n and k.
  bool of_packed_linear = false;
};
std::span<const InputFamily> input_families();  // one for each Generator, in the order of the enum
const InputFamily& input_family(Generator generator);

}  // namespace qcts
