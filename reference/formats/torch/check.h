// SPDX-License-Identifier: BSD-3-Clause
// The calls of torch's rebuild functions against their schemas.
#pragma once

#include <string_view>

#include "reference/formats/torch/object.h"

namespace qcts {

// Every call of a torch rebuild function in the graph against its schema.
void check_tensors(const TorchObject& object, const Limits& limits);
// The rebuild functions that make no plain tensor: sparse, quantized, nested, meta and wrapper tensors.
void check_special_tensor(const TorchObject& object, std::string_view function, const pickle::Refs& args,
                          const Limits& limits, uint64_t offset);
// "_rebuild_tensor_v2" for the global that names it, as part of its text; empty for anything that is no
// rebuild function of torch.
std::string_view rebuild_function(const pickle::Ref& callable);

}  // namespace qcts
