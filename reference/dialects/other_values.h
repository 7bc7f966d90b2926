// SPDX-License-Identifier: BSD-3-Clause
// The values of a pickle beside its tensors: numbers, texts, and the classes of the objects that --allow
// keeps.
#pragma once

#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct OtherValue {
  std::string name;  // keys, attributes and indices joined by '.'; of equal names the second ends in "#2"
  std::string text;  // "3", "'adam'", "object of torch.nn.modules.linear.Linear"
};

// In file order, of all pickles of the checkpoint. Left out is what torch hangs on a state dict
// (_metadata). Throws Refused (LimitExceeded) where shared containers would name more than the file can hold.
std::vector<OtherValue> other_values(const Checkpoint& checkpoint);

}  // namespace qcts
