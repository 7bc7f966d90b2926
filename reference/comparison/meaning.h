// SPDX-License-Identifier: BSD-3-Clause
// Two checkpoints compared by what their tensors mean as numbers (E1).
#pragma once

#include <string>
#include <vector>

#include "reference/comparison/findings.h"
#include "reference/dialects/checkpoint.h"

namespace qcts {

struct MeaningFindings {
  ContentDifferences different;        // one a tensor
  std::vector<std::string> undecided;  // of which it cannot be said, and why
};
// Tensors by name: dequantized bit for bit, but for the payload of NaNs. `cpu_layout_a`, `_b`: the pack of
// CPU int4 weights that do not say theirs.
MeaningFindings compare_meaning(const Checkpoint& a, const Checkpoint& b, const std::string& cpu_layout_a,
                                const std::string& cpu_layout_b);

}  // namespace qcts
