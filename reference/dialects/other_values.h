// SPDX-License-Identifier: BSD-3-Clause
// Lists the values of a pickle that are not tensors: numbers and texts.
// Also lists the classes of the objects that --allow keeps.
#pragma once

#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct OtherValue {
  std::string name;  // keys, attributes and indices joined by '.'; the second of two equal names ends in "#2"
  std::string text;  // "3", "'adam'", "object of torch.nn.modules.linear.Linear"
};

// Returns the values of all pickles of the checkpoint, in file order.
// Leaves out _metadata, which torch adds to a state dict.
// Throws Refused (LimitExceeded) if shared containers would give more names than the file can hold.
std::vector<OtherValue> other_values(const Checkpoint& checkpoint);

}  // namespace qcts
