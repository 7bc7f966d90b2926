// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes named tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Returns a plain tensor unchanged, and a quantized tensor in its logical dtype if it can be dequantized.
// Returns nullopt otherwise. `cpu_layout` is the pack of CPU int4 weights.
// It does not include a scale of x (input_scale.h).
std::optional<Tensor> dense_of(const NamedTensor& tensor, std::string_view cpu_layout);
// Returns the reason why dense_of returned nullopt. One such reason is
// "Float8Tensor with block_size [32,64] does not belong to a scheme that can be dequantized".
// For a layout that is only kept, the reason comes from reference/schemes/choices/choices.h.
std::string why_not_dense(const NamedTensor& tensor);
// Returns the elements in row-major order. Widens float16 and bfloat16 if `dtype` is float32.
std::vector<std::byte> in_dtype(const Tensor& tensor, DType dtype);
// Returns true for a tensor of torch's meta device, whose elements are in no file.
bool is_meta(const NamedTensor& tensor);
// Returns true if the tensor is plain: it has only "data" and no subclass.
bool is_plain(const NamedTensor& tensor);

}  // namespace qcts
