// SPDX-License-Identifier: BSD-3-Clause
// Weights that a model holds under two names, and that transformers' save_pretrained stores once.
#pragma once

#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct TiedWeight {
  std::string name, source;
};

// Adds to a folder's tensors those that the model's state_dict() holds beside them, because config.json ties
// them to stored ones. They share their elements. Returns their names, and those of the stored ones. The
// pairs of each architecture are in tied_weights.inc. Adds nothing if config.json ties no weights. Warns in
// checkpoint.warnings if config.json ties weights of an architecture that is not listed.
std::vector<TiedWeight> add_tied_weights(Checkpoint& checkpoint);

}  // namespace qcts
