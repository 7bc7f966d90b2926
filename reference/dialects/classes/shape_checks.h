// SPDX-License-Identifier: BSD-3-Clause
// The pieces of which the schemas' shape algebra is made. Every contradiction is a SubclassSchema refusal
// that names the tensor.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

inline constexpr std::initializer_list<DType> kFloats = {DType::float32, DType::float16, DType::bfloat16};

// "0.weight (Int4Tensor): WHAT"
[[noreturn]] void contradict(const NamedTensor& tensor, const std::string& what);

// The inner tensor, which has to be one of `dtypes` (empty: any).
const Tensor& require_payload(const NamedTensor& tensor, std::string_view name,
                              std::initializer_list<DType> dtypes);
void require_shape(const NamedTensor& tensor, std::string_view name, const Tensor& part,
                   const std::vector<int64_t>& shape);
// An attribute that is a dtype object, of one of `dtypes`.
DType require_dtype(const NamedTensor& tensor, std::string_view attribute,
                    std::initializer_list<DType> dtypes);
void require_class_or_null(const NamedTensor& tensor, std::string_view attribute, std::string_view cls);
void require_bool_or_null(const NamedTensor& tensor, std::string_view attribute);
// Attribute "shape": a list of integers >= 0, at least two of them.
std::vector<int64_t> require_outer_shape(const NamedTensor& tensor);
// Positive integers of an attribute that is a list, or a tuple in its encoding.
std::vector<int64_t> require_positive_list(const NamedTensor& tensor, std::string_view attribute);
// Attribute "block_size", one positive integer a dimension, each a divisor: shape / block_size.
std::vector<int64_t> blocks_of(const NamedTensor& tensor, const std::vector<int64_t>& shape);
// block_size [1, .., 1, g]: g. With `divides`, g is even and K % g == 0.
int64_t require_group(const NamedTensor& tensor, const std::vector<int64_t>& shape, bool divides = true);

std::vector<int64_t> with_last(std::vector<int64_t> shape, int64_t last);
// [.., N, K] -> [.., K/g, N]
std::vector<int64_t> transposed_blocks(const std::vector<int64_t>& shape, int64_t group);
// Codes of a signed integer of `bits` bits.
void require_codes_within(const NamedTensor& tensor, const Tensor& qdata, int bits);

struct Padded {
  int64_t n = 0, k = 0;
};
// Words of `_convert_weight_to_int4pack`, [n/8][k/(16 t)][32][t/2] with t inner k tiles: the padded matrix
// that they hold, which has to cover `shape` and to be padded as torchao does (k to 1024; n to 8, or to 16
// for AMD's tiles).
Padded padded_tile(const NamedTensor& tensor, const Tensor& words, const std::vector<int64_t>& shape,
                   int64_t inner_k_tiles);

}  // namespace qcts
