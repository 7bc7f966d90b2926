// The description of an input that is made at run time, from a seed.
#pragma once

#include <cstdint>
#include <string>

#include "reference/schemes/scheme.h"

namespace qcts {

struct Synthetic {
  std::string generator;  // "noise", "exact_sums", "one_hot", ...: suites/inputs/inputs.cc has the table
  WeightShape weight;
  int64_t m = 1;
  uint64_t seed = 0;
  std::string activation{kWeightOnly};  // linear and quantize_activation: one of the scheme's policies
};

}  // namespace qcts
