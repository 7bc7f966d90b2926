// SPDX-License-Identifier: BSD-3-Clause
// Decodes the blocks of ggml's quantized types to float32. A block is decoded by one function each; bit
// layouts and formulas are those of gguf 0.19.0, quants.py, dequantize_blocks of each type's class; for Q1_0
// and Q2_0, which it lacks, those of to_float in ggml 0.20.2. Products are exact, because the factors have
// fewer than 24 bits together: only the subtraction or addition of a minimum rounds, once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/formats/gguf/types.h"
#include "reference/formats/tensor.h"

namespace qcts {

// Returns true for a quantized type that dense_of_blocks() decodes.
bool can_decode_blocks(const GgufType& type);
// Returns the name of a quantized type's scheme: "gguf_q4_k".
std::string gguf_scheme_name(const GgufType& type);

// Dequantizes the rows of blocks, uint8 [..., bytes], to float32 of `shape`. Requires can_decode_blocks().
Tensor dense_of_blocks(const GgufType& type, const Tensor& blocks, const std::vector<int64_t>& shape);

// Returns the bytes that a tensor of this shape takes by the type's formula: elements / block_elements *
// block_bytes.
uint64_t block_formula_bytes(const GgufType& type, const std::vector<int64_t>& shape);

// Values that no model's weights have.
struct BlockFault {
  enum class Kind : uint8_t {
    scale,      // a scale or minimum that is not finite
    code,       // a code of TQ2_0 that stands for 2
    idle_bits,  // the sign bit of a scale of NVFP4, which ggml ignores
  } kind = Kind::scale;
  uint64_t first = 0;  // index of the first such block
  double value = 0;    // the scale or code there
  uint64_t count = 0;  // blocks with such a fault
  uint64_t total = 0;  // blocks
};
std::vector<BlockFault> block_faults(const GgufType& type, const Tensor& blocks);

}  // namespace qcts
