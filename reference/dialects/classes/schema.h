// SPDX-License-Identifier: BSD-3-Clause
// Schemas of torchao's tensor subclasses, for pickles and safetensors: names of their parts, encodings of
// their attributes, and rules that derive the shape that the model sees from the parts' shapes. Names and
// order: tensor_data_names, optional_tensor_data_names, tensor_attribute_names,
// optional_tensor_attribute_names of torchao 0.18.0.
#pragma once

#include <string_view>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

struct Outer {
  std::vector<int64_t> shape;
  DType dtype = DType::float32;
  std::string note = {};  // on parts that contradict each other where the class's own dequantize() allows it
};

struct ClassSchema {
  std::string_view name;
  std::vector<std::string_view> tensors, optional_tensors;
  std::vector<std::string_view> attributes, optional_attributes;
  // Derives the whole's shape and dtype from its parts; throws Refused (SubclassSchema) for inconsistent
  // parts. nullptr: only the names are known, and parts are kept unchanged.
  Outer (*outer)(const NamedTensor& tensor);
  // Supported by torchao's safetensors writer and reader (ALLOWED_TENSORS_SUBCLASSES).
  bool in_safetensors;
  // Attributes of older versions that today's class ignores; kept if a file has them.
  std::vector<std::string_view> former_attributes = {};
};

const ClassSchema* find_class(std::string_view name);  // as torchao 0.18 names the parts; nullptr: unknown
// As above, but with the names of an older version if the tensor has all of those.
const ClassSchema* find_class(const NamedTensor& tensor);

// Sorts payload in flatten order (required, then optional) and attributes in the order of torchao's encoder
// (optional, then required); a missing optional attribute becomes null, as in TorchAOBaseTensor.__setstate__.
// Throws Refused (SubclassSchema) for missing parts and, unless lenient, for unknown parts; lenient keeps
// them and adds a warning.
void arrange(const ClassSchema& schema, NamedTensor& tensor, bool lenient,
             std::vector<std::string>& warnings);

const Tensor* find_payload(const NamedTensor& tensor, std::string_view name);  // nullptr when absent

// Sets `scheme` and `layout` of a tensor with checked parts if one of schemes() describes its bytes.
void recognize_scheme(NamedTensor& tensor);

// Checks first-generation nested implementations (torchao 0.7 to 0.15, torchao/dtypes): Int4CPULayout,
// TensorCoreTiledLayout, PlainLayout, Float8Layout. Payload and attributes have dotted names. Unknown layouts
// pass unchecked.
void check_affine_quantized(const NamedTensor& tensor);

// "[32, 64]"
std::string shape_text(std::span<const int64_t> shape);

}  // namespace qcts
