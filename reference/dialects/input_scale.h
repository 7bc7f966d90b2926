// SPDX-License-Identifier: BSD-3-Clause
// Finds the factors by which a layer scales x before the product.
// y = (x * f) W^T = x (W * f)^T: a factor f per column of W belongs to the weight that the
// layer applies. Sources: torchao 0.18.0, linear of Int8Tensor, Int4Tensor, Int4PlainInt32Tensor,
// Int4TilePackedTo4dTensor and Int4OpaqueTensor (prototype/awq, prototype/smoothquant); torchao 0.5 to 0.13,
// quantization/linear_activation_scale.py, which divides x by its scale.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

struct InputScale {
  std::vector<double> factors;  // one for all columns or one per column; empty if the scale has another shape
  std::string misfit;           // why it does not fit the weight's columns; empty if it does
};
// Returns f. Returns nullopt if the layer does not scale x.
std::optional<InputScale> input_scale(const NamedTensor& tensor);

// Multiplies row-major values of the weight's shape by the factors of their columns.
void scale_columns(std::vector<double>& values, const std::vector<double>& factors);

// Returns the names of the parts that act on x or y instead of the weight: act_pre_scale, act_quant_scale and
// the like. A dequantized weight cannot store them.
std::vector<std::string> parts_for_input(const NamedTensor& tensor);

// Returns the weight inside a WeightTensorWithLinearActivationScaleMetadata, or nullopt for other classes.
std::optional<NamedTensor> weight_behind_input_scale(const NamedTensor& tensor);

}  // namespace qcts
