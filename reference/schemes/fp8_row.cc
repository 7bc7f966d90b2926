// SPDX-License-Identifier: BSD-3-Clause
// fp8_row: torchao 0.18.0 Float8WeightOnlyConfig(weight_dtype=torch.float8_e4m3fn, granularity=PerRow()).
// float8.h has what it shares with the other float8 schemes.
#include "reference/schemes/float8.h"

namespace qcts {

std::vector<std::unique_ptr<Scheme>> make_fp8_row() {
  std::vector<std::unique_ptr<Scheme>> all;
  all.push_back(std::make_unique<Float8Scheme>(
      Float8Parameters{.name = "fp8_row",
                       .family = "fp8_row",
                       .summary = "float8_e4m3fn weights, one float32 scale per row",
                       .has_floored_recipe = true}));
  return all;
}

}  // namespace qcts
