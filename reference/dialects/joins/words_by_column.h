// SPDX-License-Identifier: BSD-3-Clause
// GPTQ and AWQ both store weights as [columns, rows], with scales and zero points per group.
#pragma once

#include "reference/dialects/joins/join.h"

namespace qcts {

// Sets the scales [groups, rows] and the zero points int32 [groups, words] of a weight whose rows, columns
// and codes are set. A group size of -1 makes one group of all columns. Throws NotJoined if a part has
// another shape.
void set_groups(CodedWeight& weight, const Tensor& scales, const Tensor& zeros, int64_t group_size);
// Returns "g128", or "channel" for one group of all columns.
std::string group_word(int64_t group_size);

}  // namespace qcts
