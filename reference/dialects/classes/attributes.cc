// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/attributes.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include "reference/formats/refusal.h"

namespace qcts {
namespace {

struct EnumMember {
  std::string_view name;
  std::string_view text;  // the value of a string enum
  int64_t number = 0;     // the value of any other enum
};

struct EnumClass {
  std::string_view name;
  std::span<const EnumMember> members;
};

// torchao 0.18.0 quantization/quant_primitives.py; enum.auto() counts from 1.
constexpr EnumMember kMappingType[] = {
    {"SYMMETRIC", "", 1}, {"SYMMETRIC_NO_CLIPPING_ERR", "", 2}, {"ASYMMETRIC", "", 3}};
constexpr EnumMember kZeroPointDomain[] = {{"INT", "", 1}, {"FLOAT", "", 2}, {"NONE", "", 3}};
// quantization/quantize_/common/kernel_preference.py of 0.18.0, plus FBGEMM of 0.13 to 0.15, and DEEPGEMM and
// CUTEDSL of 0.19.
constexpr EnumMember kKernelPreference[] = {
    {"AUTO", "auto"},     {"TORCH", "torch"},   {"MSLK", "mslk"},         {"EMULATED", "emulated"},
    {"TRITON", "triton"}, {"FBGEMM", "fbgemm"}, {"DEEPGEMM", "deepgemm"}, {"CUTEDSL", "cutedsl"}};
// prototype/mx_formats/config.py
constexpr EnumMember kScaleCalculationMode[] = {
    {"FLOOR", "floor"}, {"RCEIL", "rceil"}, {"CEIL", "ceil"}, {"EVEN", "even"}};
// quantization/quantize_/workflows: float8_packing_format.py, intx_unpacked_to_int8_tensor.py
constexpr EnumMember kFloat8PackingFormat[] = {{"PLAIN", "plain"},
                                               {"SPARSE_2D_DATA_2D_METADATA", "sparse_2d_data_2d_metadata"},
                                               {"SPARSE_1D_DATA_1D_METADATA", "sparse_1d_data_1d_metadata"}};
constexpr EnumMember kIntxActivation[] = {{"INT8_ASYM_PER_TOKEN", "int8_asym_per_token"}};

constexpr EnumClass kEnums[] = {
    {"MappingType", kMappingType},
    {"ZeroPointDomain", kZeroPointDomain},
    {"KernelPreference", kKernelPreference},
    {"ScaleCalculationMode", kScaleCalculationMode},
    {"Float8PackingFormat", kFloat8PackingFormat},
    {"IntxUnpackedToInt8TensorActivationQuantization", kIntxActivation},
};

// NamedTuples, which a pickle encodes by position: torchao/float8/inference.py.
struct NamedTuple {
  std::string_view name;
  std::array<std::string_view, 3> fields;
};
constexpr NamedTuple kNamedTuples[] = {{"Float8MMConfig", {"emulate", "use_fast_accum", "pad_inner_dim"}}};

// Dataclasses and NamedTuples that torchao's encoder writes into metadata.
constexpr std::string_view kJsonClasses[] = {"Float8MMConfig",
                                             "QuantizeTensorToFloat8Kwargs",
                                             "QuantizeTensorToInt8Kwargs",
                                             "QuantizeTensorToMXKwargs",
                                             "QuantizeTensorToNVFP4Kwargs",
                                             "PerRow",
                                             "PerTensor",
                                             "PerBlock",
                                             "PerGroup",
                                             "PerAxis",
                                             "PerToken"};

const EnumClass* find_enum(std::string_view name) {
  for (const EnumClass& candidate : kEnums)
    if (candidate.name == name) return &candidate;
  return nullptr;
}

Json typed(std::string_view type, Json data) {
  Json object = Json::object();
  object["_type"] = type;
  object["_data"] = std::move(data);
  return object;
}

// Is this int1 .. int7 or uint1 .. uint7? torch names these types but cannot save tensors of them.
bool is_sub_byte_integer(std::string_view name) {
  if (name.starts_with("u")) name.remove_prefix(1);
  return name.size() == 4 && name.starts_with("int") && name[3] >= '1' && name[3] <= '7';
}

bool is_torch_dtype(std::string_view name) {
  if (name == "float6_e2m3fn" || name == "float6_e3m2fn") return false;  // safetensors' own
  return dtype_from_name(name) || is_sub_byte_integer(name);
}

// Attributes are small, but shared nodes could encode a tree of any size in a few bytes. JSON objects search
// their keys linearly.
constexpr uint64_t kMaxAttributeNodes = 65536, kMaxAttributeKeys = 1024;

struct TreeSize {
  uint64_t nodes = 0;
  uint64_t bytes = 0;  // heap bytes of its JSON
};

// Returns the heap bytes of a node's own JSON, without its slot in the container. typed() makes an object of
// two.
uint64_t own_json_bytes(const pickle::Node& node) {
  constexpr uint64_t kContainer = 56, kTyped = 320;
  switch (node.kind) {
    case pickle::Kind::string:
      return 32 + text_block_bytes(node.text.size());
    case pickle::Kind::bytes:
      return kTyped + text_block_bytes(2 * node.text.size());
    case pickle::Kind::list:
      return kContainer;
    case pickle::Kind::dict:
      return std::ranges::any_of(node.pairs, [](const auto& pair) { return pair.first->text == "_type"; })
                 ? kContainer + kTyped
                 : kContainer;
    case pickle::Kind::none:
    case pickle::Kind::boolean:
    case pickle::Kind::integer:
    case pickle::Kind::real:
      return 0;
    default:
      return kTyped + text_block_bytes(node.text.size());
  }
}

// Measures a tree, memoised by node, so that shared nodes are visited once.
TreeSize tree_size(const pickle::Ref& node, std::unordered_map<const pickle::Node*, TreeSize>& sizes,
                   ReadBudget& budget) {
  if (!node) return {};
  budget.take_steps(1);
  if (const auto known = sizes.find(node.get()); known != sizes.end()) return known->second;
  constexpr uint64_t kItem = 48, kPair = 144;  // in a list that grows by doubling
  TreeSize size{1, own_json_bytes(*node)};
  const auto add = [&](const pickle::Ref& child, uint64_t place_bytes) {
    const TreeSize more = tree_size(child, sizes, budget);
    size.nodes = std::min(size.nodes + more.nodes, kMaxAttributeNodes + 1);
    size.bytes = std::min(size.bytes + place_bytes + more.bytes, uint64_t{1} << 40);
  };
  for (const pickle::Ref& child : node->items) add(child, kItem);
  for (const auto& [key, value] : node->pairs) add(key, 0), add(value, kPair);
  add(node->state, kPair);
  return sizes[node.get()] = size;
}

Json encode(const pickle::Ref& node, const std::string& where);

Json enum_json(const EnumClass& cls, const pickle::Ref& value, const std::string& where) {
  for (const EnumMember& member : cls.members) {
    const bool equal = value->kind == pickle::Kind::string
                           ? !member.text.empty() && member.text == value->text
                           : value->kind == pickle::Kind::integer && member.number == value->integer;
    if (equal) return typed(cls.name, member.name);
  }
  const std::string shown =
      value->kind == pickle::Kind::string ? "'" + value->text + "'" : std::to_string(value->integer);
  refuse(RefusalClass::SubclassSchema, where + ": " + std::string(cls.name) + " has no value " + shown,
         value->offset);
}

Json list_json(const pickle::Refs& items, const std::string& where) {
  Json array = Json::array();
  for (const pickle::Ref& item : items) array.push_back(encode(item, where));
  return array;
}

Json mapping_json(const pickle::Pairs& pairs, const std::string& where) {
  if (pairs.size() > kMaxAttributeKeys)
    refuse(RefusalClass::LimitExceeded,
           where + ": a dict of more than " + std::to_string(kMaxAttributeKeys) + " keys");
  Json object = Json::object();
  for (const auto& [key, value] : pairs) {
    std::string name = key_text(key);
    for (int same = 2; object.contains(name); ++same) name = key_text(key) + "#" + std::to_string(same);
    object[name] = encode(value, where);
  }
  return object.contains("_type") ? typed("dict", std::move(object)) : object;
}

std::string hexadecimal(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

Json global_json(const pickle::Ref& node) {
  const GlobalName name = split_global(node);
  if (name.module == "torch" && is_torch_dtype(name.name)) return typed("torch.dtype", name.name);
  return typed("function", std::string(name.module) + "." + std::string(name.name));
}

Json call_json(const pickle::Ref& node, const std::string& where) {
  const GlobalName callee = split_global(node->items[0]);
  const pickle::Refs& arguments = node->items[1]->items;
  const bool one = arguments.size() == 1;
  if (const EnumClass* cls = find_enum(callee.name); cls && one) return enum_json(*cls, arguments[0], where);
  if (callee.module == "torch" && callee.name == "device" && one &&
      arguments[0]->kind == pickle::Kind::string)
    return typed("torch.device", arguments[0]->text);
  if (callee.name == "_get_layout" && one && arguments[0]->kind == pickle::Kind::string)
    return typed("torch.layout", arguments[0]->text);
  if (callee.module == "torch" && callee.name == "Size" && one) return list_json(arguments[0]->items, where);
  if (callee.name == "getattr" && arguments.size() == 2 && arguments[0]->kind == pickle::Kind::global &&
      arguments[1]->kind == pickle::Kind::string) {  // a method, which safetensors metadata names by its path
    const GlobalName cls = split_global(arguments[0]);
    return typed("function",
                 std::string(cls.module) + "." + std::string(cls.name) + "." + arguments[1]->text.str());
  }
  if (callee.name == "OrderedDict") return mapping_json(node->pairs, where);
  return typed(callee.name, list_json(arguments, where));
}

Json object_json(const pickle::Ref& node, const std::string& where) {
  const GlobalName cls = split_global(node->items[0]);
  const pickle::Refs& arguments = node->items[1]->items;
  for (const NamedTuple& candidate : kNamedTuples) {
    if (candidate.name != cls.name || arguments.size() != candidate.fields.size()) continue;
    Json fields = Json::object();
    for (size_t i = 0; i < arguments.size(); ++i)
      fields[std::string(candidate.fields[i])] = encode(arguments[i], where);
    return typed(cls.name, std::move(fields));
  }
  if (!arguments.empty()) return typed(cls.name, list_json(arguments, where));
  if (!node->state) return typed(cls.name, Json::object());
  return typed(cls.name, encode(node->state, where));
}

Json encode(const pickle::Ref& node, const std::string& where) {
  switch (node->kind) {
    case pickle::Kind::none:
      return nullptr;
    case pickle::Kind::boolean:
      return node->boolean;
    case pickle::Kind::integer:
      return node->integer;
    case pickle::Kind::big_integer:
      return typed("int", pickle::integer_text(node));
    case pickle::Kind::real:
      return node->real;
    case pickle::Kind::string:
      return node->text;
    case pickle::Kind::bytes:
      return typed("bytes", hexadecimal(node->text));
    case pickle::Kind::list:
      return list_json(node->items, where);
    case pickle::Kind::tuple:
      return typed("tuple", list_json(node->items, where));
    case pickle::Kind::set:
      return typed("set", list_json(node->items, where));
    case pickle::Kind::dict:
      return mapping_json(node->pairs, where);
    case pickle::Kind::global:
      return global_json(node);
    case pickle::Kind::call:
      return call_json(node, where);
    case pickle::Kind::new_object:
      return object_json(node, where);
    case pickle::Kind::enclosing:
      return typed("enclosing", node->integer);
    case pickle::Kind::persistent:
      break;
  }
  refuse(RefusalClass::PickleType, where + ": a storage is not an attribute", node->offset);
}

}  // namespace

GlobalName split_global(const pickle::Ref& global) {
  if (!global || global->kind != pickle::Kind::global) return {};
  const std::string_view text = global->text;
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return {{}, text};
  return {text.substr(0, blank), text.substr(blank + 1)};
}

Json attribute_json(const pickle::Ref& node, const std::string& where) {
  ReadBudget budget;
  return attribute_json(node, where, budget);
}

Json attribute_json(const pickle::Ref& node, const std::string& where, ReadBudget& budget) {
  std::unordered_map<const pickle::Node*, TreeSize> sizes;
  const TreeSize size = tree_size(node, sizes, budget);
  if (size.nodes > kMaxAttributeNodes)
    refuse(RefusalClass::LimitExceeded,
           where + ": an attribute of more than " + std::to_string(kMaxAttributeNodes) + " values",
           node->offset);
  budget.take_bytes(size.bytes);
  return encode(node, where);
}

std::string key_text(const pickle::Ref& key) {
  switch (key->kind) {
    case pickle::Kind::string:
      return key->text;
    case pickle::Kind::integer:
    case pickle::Kind::big_integer:
      return pickle::integer_text(key);
    case pickle::Kind::boolean:
      return key->boolean ? "True" : "False";
    case pickle::Kind::none:
      return "None";
    case pickle::Kind::tuple: {
      std::string text;
      for (const pickle::Ref& item : key->items)
        text += (text.empty() ? "" : ", ") +
                (item->kind == pickle::Kind::string ? "'" + item->text.str() + "'" : key_text(item));
      return "(" + text + (key->items.size() == 1 ? ",)" : ")");
    }
    default:
      return attribute_json(key, "key").dump();
  }
}

void check_attribute_json(const Json& value, const std::string& where) {
  if (value.is_array()) {
    for (const Json& item : value) check_attribute_json(item, where);
    return;
  }
  if (!value.is_object()) return;
  if (!value.contains("_type") && !value.contains("_data")) {
    for (const auto& [key, item] : value.items()) check_attribute_json(item, where);
    return;
  }
  if (value.size() != 2 || !value.contains("_type") || !value.contains("_data") ||
      !value["_type"].is_string())
    refuse(RefusalClass::SubclassSchema,
           where + ": an object with '_type' and '_data' holds exactly these two");
  const std::string type = value["_type"];
  const Json& data = value["_data"];
  if (type == "torch.dtype") {
    if (data.is_string() && is_torch_dtype(data.get<std::string>())) return;
    throw Refused({RefusalClass::SubclassSchema,
                   where + ": torch." + (data.is_string() ? data.get<std::string>() : data.dump()) +
                       " is not an element type",
                   std::nullopt, true});
  }
  if (const EnumClass* cls = find_enum(type)) {
    const auto named = [&](const EnumMember& member) {
      return data.is_string() && member.name == data.get<std::string>();
    };
    if (std::ranges::any_of(cls->members, named)) return;
    refuse(RefusalClass::SubclassSchema, where + ": " + type + " has no member " + data.dump());
  }
  if (std::ranges::find(kJsonClasses, type) == std::end(kJsonClasses))
    throw Refused({RefusalClass::SubclassSchema, where + ": class " + type + " is not allowed in metadata",
                   std::nullopt, true});
  if (!data.is_object())
    refuse(RefusalClass::SubclassSchema, where + ": " + type + " needs an object of fields");
  for (const auto& [key, item] : data.items()) check_attribute_json(item, where + "." + key);
}

Json dtype_json(DType dtype) { return dtype_json(dtype_name(dtype)); }
Json dtype_json(std::string_view name) { return typed("torch.dtype", name); }

std::optional<EnumValue> enum_value(std::string_view cls, std::string_view name) {
  if (const EnumClass* found = find_enum(cls))
    for (const EnumMember& member : found->members)
      if (member.name == name) return EnumValue{member.text, member.number};
  return std::nullopt;
}

std::vector<std::string_view> named_tuple_fields(std::string_view cls) {
  for (const NamedTuple& candidate : kNamedTuples)
    if (candidate.name == cls) return {candidate.fields.begin(), candidate.fields.end()};
  return {};
}

std::string data_name(const Json& value) {
  const auto data = value.is_object() ? value.find("_data") : value.end();
  return value.is_object() && data != value.end() && data->is_string() ? data->get<std::string>() : "";
}

std::optional<DType> dtype_of_json(const Json& value) {
  if (!value.is_object() || value.value("_type", "") != "torch.dtype") return std::nullopt;
  const auto data = value.find("_data");
  if (data == value.end() || !data->is_string()) return std::nullopt;
  return dtype_from_name(data->get<std::string>());
}

}  // namespace qcts
