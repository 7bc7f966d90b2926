// SPDX-License-Identifier: BSD-3-Clause
// Attributes of torchao's tensor subclasses in torchao's own JSON encoding.
// TensorSubclassAttributeJSONEncoder defines it (torchao 0.18.0, prototype/safetensors/safetensors_utils.py):
//   torch.dtype            {"_type": "torch.dtype", "_data": "bfloat16"}
//   enum                   {"_type": class, "_data": NAME}; a pickle holds the value, not the name
//   dataclass, NamedTuple  {"_type": class, "_data": {field: value}}
//   list, number, string, bool and None are unchanged
//
// qcts adds encodings for values that this encoder cannot express:
//   tuple                  {"_type": "tuple", "_data": [...]}
//   torch.device, layout   {"_type": "torch.device", "_data": "cpu"}
//   function               {"_type": "function", "_data": "module.name"}
//   bytes                  {"_type": "bytes", "_data": hexadecimal}
//   set                    {"_type": "set", "_data": [...]}
//   dict with the key "_type"   {"_type": "dict", "_data": {...}}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/formats/io/read_budget.h"
#include "reference/formats/pickle/pickle.h"
#include "reference/formats/tensor.h"

namespace qcts {

using Json = nlohmann::ordered_json;

// Encodes a value that contains no tensors.
// `where` ("0.weight: act_quant_kwargs") begins the detail of a refusal.
// Throws Refused: SubclassSchema for an unknown enum value, PickleType if the value cannot be an attribute.
Json attribute_json(const pickle::Ref& node, const std::string& where);

// Charges the budget before it encodes the value.
Json attribute_json(const pickle::Ref& node, const std::string& where, ReadBudget& budget);

// Returns a mapping's key as tensor names show it: text unchanged, 7, True, or the JSON of any other key.
std::string key_text(const pickle::Ref& key);

// Checks that `value`, read from safetensors metadata, contains only types that torchao's decoder builds.
// The decoder builds known classes, enum names and dtypes. Throws Refused (SubclassSchema).
// The refusal is marked as security if a dtype names anything else in torch.
void check_attribute_json(const Json& value, const std::string& where);

// Returns {"_type": "torch.dtype", "_data": ...}.
Json dtype_json(DType dtype);
Json dtype_json(std::string_view name);  // accepts "int4" too, which no tensor has

// The value of an enum member: text for a string enum, otherwise a number.
struct EnumValue {
  std::string_view text;
  int64_t number = 0;
};
std::optional<EnumValue> enum_value(std::string_view cls, std::string_view name);
// Returns the field names of a NamedTuple in order, or an empty vector for any other class.
std::vector<std::string_view> named_tuple_fields(std::string_view cls);
// Returns the name in an enum or dtype object: "NAME" for {"_type": .., "_data": "NAME"}.
// Returns "" for any other value.
std::string data_name(const Json& value);
// Returns the element type of a dtype object, or nullopt for int1 .. uint7 and other values.
std::optional<DType> dtype_of_json(const Json& value);

// Splits "module name" into {"torchao.quantization", "Int8Tensor"}.
// `global` may also be a call or a new object; then its class is split.
struct GlobalName {
  std::string_view module, name;
};
GlobalName split_global(const pickle::Ref& global);

}  // namespace qcts
