// SPDX-License-Identifier: BSD-3-Clause
// The element types of GGUF tensors. A quantized type stores each run of `block_elements` elements of a row
// in a block of `block_bytes` bytes. Source: gguf 0.19.0, constants.py, GGMLQuantizationType and
// GGML_QUANT_SIZES; for the types that ggml has removed, ggml.h as of llama.cpp b4000.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reference/formats/tensor.h"

namespace qcts {

struct GgufType {
  uint32_t id = 0;
  std::string_view name;  // ggml's: "Q4_K"
  uint32_t block_elements = 1;
  uint32_t block_bytes = 0;
  std::optional<DType> dtype{};  // nullopt for a quantized type
};

// All types whose size is known, by id.
std::span<const GgufType> gguf_types();
// Returns the type with this id, or nullptr if its size is not known.
const GgufType* find_gguf_type(uint32_t id);
// Describes an id that find_gguf_type() does not find: "type 4 (Q4_2), which ggml removed before GGUF".
std::string unknown_gguf_type(uint32_t id);

}  // namespace qcts
