// SPDX-License-Identifier: BSD-3-Clause
// Compares the numbers that the tensors of two checkpoints stand for (E1).
#pragma once

#include <string>
#include <vector>

#include "reference/comparison/findings.h"
#include "reference/dialects/checkpoint.h"

namespace qcts {

struct MeaningFindings {
  ContentDifferences different;        // one per tensor, and one for a scale of its x
  std::vector<std::string> undecided;  // tensors that cannot be compared, each with the reason
};
// Compares dequantized tensors by name, bit for bit except for NaN payloads, and the scales of their x.
// `cpu_layout_a` and `cpu_layout_b` are assumed for CPU int4 weights whose file does not record the pack. If
// they are empty, such weights are equal if their parts are, and undecided otherwise.
MeaningFindings compare_meaning(const Checkpoint& a, const Checkpoint& b, const std::string& cpu_layout_a,
                                const std::string& cpu_layout_b);

}  // namespace qcts
