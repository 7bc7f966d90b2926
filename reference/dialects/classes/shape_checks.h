// SPDX-License-Identifier: BSD-3-Clause
// Building blocks of the schemas' shape rules.
// Every inconsistency is a refusal (SubclassSchema) that names the tensor.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

inline constexpr std::initializer_list<DType> kFloats = {DType::float32, DType::float16, DType::bfloat16};

// Throws Refused (SubclassSchema) with the text "0.weight (Int4Tensor): WHAT".
[[noreturn]] void contradict(const NamedTensor& tensor, const std::string& what);

// Returns the inner tensor. Its dtype must be one of `dtypes`; an empty list allows any.
const Tensor& require_payload(const NamedTensor& tensor, std::string_view name,
                              std::initializer_list<DType> dtypes);
void require_shape(const NamedTensor& tensor, std::string_view name, const Tensor& part,
                   const std::vector<int64_t>& shape);
// Returns the dtype in an attribute, which must be one of `dtypes`.
DType require_dtype(const NamedTensor& tensor, std::string_view attribute,
                    std::initializer_list<DType> dtypes);
void require_class_or_null(const NamedTensor& tensor, std::string_view attribute, std::string_view cls);
void require_bool_or_null(const NamedTensor& tensor, std::string_view attribute);
// Returns the attribute "shape", which must be a list of at least two integers >= 0.
std::vector<int64_t> require_outer_shape(const NamedTensor& tensor);
// Returns the positive integers of an attribute that is a list or an encoded tuple.
std::vector<int64_t> require_positive_list(const NamedTensor& tensor, std::string_view attribute);
// Returns shape / block_size. The attribute "block_size" must have one positive divisor per dimension.
std::vector<int64_t> blocks_of(const NamedTensor& tensor, const std::vector<int64_t>& shape);
// Returns g for a block_size [1, .., 1, g]. With `divides`, g must be even and divide K.
int64_t require_group(const NamedTensor& tensor, const std::vector<int64_t>& shape, bool divides = true);

std::vector<int64_t> with_last(std::vector<int64_t> shape, int64_t last);
// Returns [.., K/g, N] for a shape [.., N, K].
std::vector<int64_t> transposed_blocks(const std::vector<int64_t>& shape, int64_t group);
// Checks that all codes fit a signed integer of `bits` bits.
void require_codes_within(const NamedTensor& tensor, const Tensor& qdata, int bits);

struct Padded {
  int64_t n = 0, k = 0;
};
// Returns the size of the padded matrix that the words of `_convert_weight_to_int4pack` hold.
// The words have the shape [n/8][k/(16 t)][32][t/2] with t inner k tiles.
// The matrix must cover `shape` and be padded as torchao pads.
// torchao pads k to a multiple of 1024, and n to a multiple of 8, or of 16 for AMD's tiles.
Padded padded_tile(const NamedTensor& tensor, const Tensor& words, const std::vector<int64_t>& shape,
                   int64_t inner_k_tiles);

}  // namespace qcts
