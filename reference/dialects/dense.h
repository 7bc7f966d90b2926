// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes named tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Returns a plain tensor itself, a quantized one in its logical dtype when it can be dequantized; nullopt
// otherwise. `cpu_layout` is the pack of CPU int4 weights.
std::optional<Tensor> dense_of(const NamedTensor& tensor, std::string_view cpu_layout);
// Says why dense_of returned nullopt: "Float8Tensor with block_size [32,64] belongs to no scheme that can be
// dequantized", or the reason of a layout that is only kept (reference/schemes/choices.h).
std::string why_not_dense(const NamedTensor& tensor);
// Returns the elements in row-major order; float16 and bfloat16 are widened when `dtype` is float32.
std::vector<std::byte> in_dtype(const Tensor& tensor, DType dtype);
// Is the tensor plain: "data" alone, without a subclass?
bool is_plain(const NamedTensor& tensor);

}  // namespace qcts
