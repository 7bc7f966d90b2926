// SPDX-License-Identifier: BSD-3-Clause
// What a named tensor means as plain numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// The tensor itself when plain; dequantized in its logical dtype when a scheme means it; nullopt otherwise.
// `cpu_layout` is the pack of CPU int4 weights.
std::optional<Tensor> dense_of(const NamedTensor& tensor, std::string_view cpu_layout);
// "Float8Tensor with block_size [32,64] belongs to no scheme that can be dequantized"; of a layout that is
// kept (reference/schemes/choices.h), why.
std::string why_not_dense(const NamedTensor& tensor);
// The elements in row-major order; float16 and bfloat16 widened where `dtype` is float32.
std::vector<std::byte> in_dtype(const Tensor& tensor, DType dtype);
// "data" alone, and nothing of a subclass around it.
bool is_plain(const NamedTensor& tensor);

}  // namespace qcts
