// SPDX-License-Identifier: BSD-3-Clause
// Faults of a writer of pickles that do not concern the elements of tensors.
// Such faults concern numbers, flags, strings and kinds of containers.
#pragma once

#include <string_view>

#include "reference/formats/torch/object.h"

namespace qcts::mutants {

// The class of an object that a golden keeps by Golden::allow.
inline constexpr std::string_view kKeptModule = "schedules", kKeptClass = "Schedule";

void strike_object_values(TorchObject& object);

}  // namespace qcts::mutants
