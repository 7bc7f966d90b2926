// SPDX-License-Identifier: BSD-3-Clause
// A quantized weight as the numbers that it means, independent of the form in which a file holds them:
//   w[row, column] = (code - zero) * scale
// with one zero and one scale per block. GPTQ, AWQ, compressed-tensors and torchao hold such weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

struct GridWeight {
  int64_t rows = 0, columns = 0;
  DType dtype = DType::bfloat16;   // of the dequantized weight
  std::optional<DType> element{};  // the float8 type of the codes; nullopt: signed integers
  int bits = 8;                    // of a code
  std::vector<int8_t> codes;       // [rows, columns]; float8: their bits
  int64_t row_block = 1;           // rows that share a scale
  int64_t column_block = 1;        // columns that share a scale
  std::vector<float> scales;       // [block_rows(), block_columns()], finite
  std::vector<int> zeros;          // as many as scales; 0 for float8
  std::vector<int32_t> group_of;   // the block of each column; empty if it is column / column_block

  int64_t block_rows() const { return (rows + row_block - 1) / row_block; }
  int64_t block_columns() const { return (columns + column_block - 1) / column_block; }
  bool has_zeros() const;
  // Returns "row 3, group 5" for the index of a scale.
  std::string place(size_t block) const;
};

// Reads a weight of another library, or a torchao weight without quantized activations.
// Throws std::invalid_argument, "NAME: REASON", for a weight that does not consist of such numbers. The
// reason names the first group that is not: a scale that is not finite, or a float zero point between two
// codes.
GridWeight grid_of(const NamedTensor& tensor);

}  // namespace qcts
