// SPDX-License-Identifier: BSD-3-Clause
// Adds the weights that a model's state_dict() holds under two names, and that save_pretrained of
// transformers stores once.
#pragma once

#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reference/dialects/names/tied_names.h"

namespace qcts {

// Adds to a folder's tensors those that the model's state_dict() also holds, because config.json ties
// them to stored ones. They share their elements. Returns their names, and those of the stored ones. Adds
// nothing if config.json ties no weights. Warns in checkpoint.warnings if config.json ties weights of an
// architecture that is not known.
std::vector<TiedName> add_tied_weights(Checkpoint& checkpoint);

}  // namespace qcts
