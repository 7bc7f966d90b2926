// SPDX-License-Identifier: BSD-3-Clause
// A weight [rows, columns] of codes, scales and zero points, as libraries other than torchao store it.
// The parts are described as data, so that one decoder reads the formats of all of them:
//   w = round_dtype(float32((code - zero) * scale))
// The difference is exact, and the product is rounded to float32 as ATen rounds it before it is narrowed.
// Two libraries add a step: bitsandbytes multiplies int8 by a constant, in float32, and MLX adds a
// bias:
//   w = round_dtype(float32(float32(code * scale) * factor)),  w = round_dtype(round_dtype(code * scale) +
//   bias)
// Sources: compressed-tensors 0.20.0, quantization/lifecycle/forward.py, dequantize;
// GPTQModel 7.7.0, nn_modules/qlinear/__init__.py, dequantize_weight; AutoAWQ 0.2.9, utils/packing_utils.py,
// dequantize_gemm; transformers 5.24.0, integrations/finegrained_fp8.py and integrations/mxfp4.py;
// bitsandbytes 0.50.2, backends/cpu/ops.py and backends/default/ops.py; MLX 0.32.4, mx.dequantize().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// How the bits of one code become a number.
enum class CodeKind : uint8_t {
  unsigned_integer,
  offset_integer,  // minus 2^(bits - 1)
  signed_integer,  // two's complement
  float8_e4m3,
  float6_e2m3,
  float4_e2m1,
  table,  // CodeMatrix::table
};

// How codes are packed in the words of a line.
enum class CodePacking : uint8_t {
  dense,       // a stream of bits, lowest first; a code may cross into the next word
  padded,      // 32 / bits codes in each word, with idle bits above them
  awq,         // eight codes of four bits, in the order 0 2 4 6 1 3 5 7
  high_first,  // two codes of four bits in each byte, the first one in its high half
};

// The values that the recipe of a format writes, where its codes have more.
struct CodeRange {
  float least = 0, greatest = 0;
};

// A matrix of codes. The words of a line follow each other by `word_stride`.
struct CodeMatrix {
  Tensor words;  // row-major
  int word_bits = 32;
  int bits = 4;
  CodePacking packing = CodePacking::dense;
  CodeKind kind = CodeKind::unsigned_integer;
  int64_t lines = 0, length = 0;  // length: codes in a line
  int64_t line_stride = 0, word_stride = 1;
  bool lines_are_rows = true;  // of the weight; otherwise columns of codes, or groups of zero points
  std::vector<float> table{};  // the value of each code
  std::optional<CodeRange> range{};

  // Returns the number of words in a line that holds `length` codes.
  int64_t line_words() const;
};

// Scales that are quantized themselves: scale = float32(float32(table[byte] * absmax[i / block]) + offset).
struct NestedScales {
  std::vector<float> table;   // of 256 values
  std::vector<float> absmax;  // one for each block
  int64_t block = 256;        // scales that share one
  float offset = 0;
};

struct ScaleMatrix {
  // float32, float16, bfloat16 or float8_e4m3fn; uint8 and float8_e8m0fnu stand for 2^(byte - 127).
  // With `nested` they are bytes that select from its table.
  Tensor values;
  std::optional<NestedScales> nested{};
  int64_t row_block = 1;     // rows that share a scale
  int64_t column_block = 1;  // columns that share a scale, unless CodedWeight::group_of says otherwise
  int64_t rows = 1, columns = 1;
  bool transposed = false;       // stored as [columns, rows]
  std::optional<Tensor> global;  // one float32 for the whole weight
  bool divides_by_global = false;
  bool rounded_first = false;  // to the dtype of the weight, before the product
  bool any_sign = false;       // the library writes negative scales too
  bool zeros_are_nan = false;  // the library divides zeros by a scale of 0, or their scales by a global one
  bool any_size = false;       // nothing is known about the library, which may write any finite scale
  bool may_underflow =
      false;  // the library narrows scales after it has divided by them, so that one may be 0
};

struct CodedWeight {
  std::string scheme;  // the format, the codes and their groups: "ct_int4_g128_sym"
  int64_t rows = 0, columns = 0;
  DType dtype = DType::bfloat16;  // of the dequantized weight
  // The widest dtype that the library quantizes, which limits the scales.
  DType quantized_from = DType::float32;
  CodeMatrix codes;
  ScaleMatrix scales;
  std::optional<CodeMatrix> zeros;  // as many as scales
  int64_t zero = 0;                 // added to each of `zeros`; without them, the zero point of all groups
  std::optional<Tensor> group_of;   // int32 [columns]: the group of each column
  bool plain_zero = false;          // a code of -0 is read as +0
  float factor = 1;                 // of the product of code and scale
  std::optional<Tensor> biases{};   // of the dtype of the weight, as many as scales; added to the product
  int64_t experts = 1;              // matrices that are stacked along the rows
  bool transposed = false;          // the model sees each of them as [columns, rows]
  std::vector<int64_t> shape{};     // that the model sees; empty: it follows from the fields above
  uint64_t formula_bytes = 0;       // of all parts, by the format's formula
};

// Returns the bytes that the codes, scales and zero points take by their sizes.
uint64_t formula_bytes_of(const CodedWeight& weight);
// Returns which part contradicts the sizes of the weight, such as "scales hold 12 values, not 16". Returns ""
// if every code, scale and zero point of the weight is in its part.
std::string coded_contradiction(const CodedWeight& weight);

// An element before any rounding: (code - zero) * scale + bias, times CodedWeight::factor. All are exact.
struct CodedElement {
  float code = 0, zero = 0, scale = 0, bias = 0;
};
// Visits the rows of a weight, each with one element per column.
// Requires that coded_contradiction() is empty.
void for_each_coded_row(
    const CodedWeight& weight,
    const std::function<void(int64_t row, std::span<const CodedElement> elements)>& visit);
// Returns the scales as codes are multiplied by them, [rows, columns].
std::vector<float> effective_scales(const CodedWeight& weight);
// Returns the value of an element before it is rounded to the dtype of the weight.
float value_of_element(const CodedWeight& weight, const CodedElement& element);
// Returns the group of each column.
std::vector<size_t> groups_of_columns(const CodedWeight& weight);

// Dequantizes a weight to `shape` in its dtype. Requires that coded_contradiction() is empty.
Tensor dense_of_coded(const CodedWeight& weight, const std::vector<int64_t>& shape);

// Returns the bits of all codes of a matrix as unsigned integers, line by line.
// Requires that the words hold them all.
std::vector<int64_t> fields_of(const CodeMatrix& matrix);
// Reads a tensor of int8, int16, int32 or int64.
std::vector<int64_t> read_integers(const Tensor& tensor);
// Reads a tensor of floats.
std::vector<float> read_floats(const Tensor& tensor);
// Returns the bytes of a tensor of any dtype as elements of another one, which has eight bits.
Tensor bytes_as(DType dtype, const Tensor& tensor, std::vector<int64_t> shape);

}  // namespace qcts
