// SPDX-License-Identifier: BSD-3-Clause
// Counts of one quantized weight: groups of zeros, codes at an end of their range, and the spread of scales.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "reference/dialects/decoders/scheme_tensor.h"
#include "reference/values/values.h"

namespace qcts {

// `plain` is the weight's planes in layout "plain", `dense` the dequantized weight, row-major in its dtype.
TensorValues tensor_values(const std::string& name, const SchemeTensor& tensor, const Planes& plain,
                           std::span<const std::byte> dense);

}  // namespace qcts
