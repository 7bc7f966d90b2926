// SPDX-License-Identifier: BSD-3-Clause
// Faults of a writer of pickles that do not concern the elements of tensors.
// Such faults concern numbers, flags, strings and kinds of containers.
#pragma once

#include "reference/formats/torch/zip.h"

namespace qcts::mutants {

void strike_object_values(TorchZip& zip);

}  // namespace qcts::mutants
