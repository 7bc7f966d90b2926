// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/config_recipe.h"

#include <algorithm>
#include <array>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/decoders/decoder.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

// The tensor classes that a configuration produces (torchao 0.5 to 0.18, quantization/quant_api.py).
// `layouts`: for an AffineQuantizedTensor, beginnings of its implementation's class name.
// `by_version`: version 1 makes an AffineQuantizedTensor, and later ones make `classes`.
struct Makes {
  std::string_view object, text;  // the class, and the string of transformers 4
  std::string_view classes;
  std::string_view layouts;
  bool activations;  // LinearActivationQuantizedTensor around it, act_quant_kwargs in it, or float8 scales
  bool by_version = true;
};
constexpr std::array<Makes, 9> kMakes = {{
    {"Int8WeightOnlyConfig", "int8_weight_only", "Int8Tensor", "Plain", false},
    {"Int8DynamicActivationInt8WeightConfig", "int8_dynamic_activation_int8_weight", "Int8Tensor",
     "Plain SemiSparse BlockSparse", true},
    {"Float8WeightOnlyConfig", "float8_weight_only", "Float8Tensor", "Float8", false},
    {"Float8DynamicActivationFloat8WeightConfig", "float8_dynamic_activation_float8_weight", "Float8Tensor",
     "Float8", true},
    {"Int4WeightOnlyConfig", "int4_weight_only",
     "Int4Tensor Int4PlainInt32Tensor Int4TilePackedTo4dTensor Int4PreshuffledTensor Int4OpaqueTensor "
     "Int4MarlinSparseTensor",
     "Int4CPU TensorCoreTiled Plain MarlinSparse Int4XPU", false},
    {"Float8DynamicActivationInt4WeightConfig", "Float8DynamicActivationInt4WeightConfig",
     "Int4Tensor Int4PreshuffledTensor", "", true, false},
    {"Int8DynamicActivationInt4WeightConfig", "int8_dynamic_activation_int4_weight",
     "IntxUnpackedToInt8Tensor", "Plain MarlinQQQ Int8DynamicActInt4 Int4Packed", true, false},
    {"IntxWeightOnlyConfig", "IntxWeightOnlyConfig", "IntxUnpackedToInt8Tensor IntxUnpackedTensor",
     "QDQ Plain", false},
    {"Int8DynamicActivationIntxWeightConfig", "Int8DynamicActivationIntxWeightConfig",
     "IntxUnpackedToInt8Tensor IntxUnpackedTensor IntxOpaqueTensor", "QDQ PackedLinear", true},
}};

// The class that a word of int4_packing_format makes, packing_format in torchao 0.13. transformers 5 reads no
// configuration of the packs of a CPU, so Int4OpaqueTensor is loaded under PLAIN.
struct Packing {
  std::string_view word, classes;
};
constexpr Packing kInt4Packings[] = {
    {"PLAIN", "Int4Tensor Int4OpaqueTensor"},          {"PRESHUFFLED", "Int4PreshuffledTensor"},
    {"MARLIN_SPARSE", "Int4MarlinSparseTensor"},       {"PLAIN_INT32", "Int4PlainInt32Tensor"},
    {"TILE_PACKED_TO_4D", "Int4TilePackedTo4dTensor"}, {"OPAQUE", "Int4OpaqueTensor"}};

constexpr std::string_view kWrapper = "LinearActivationQuantizedTensor";
constexpr std::string_view kFirstGeneration = "AffineQuantizedTensor";

bool holds_word(std::string_view list, std::string_view word) {
  return (" " + std::string(list) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

bool begins_with_one_of(std::string_view list, std::string_view word) {
  for (size_t first = 0; first < list.size();) {
    const size_t end = std::min(list.find(' ', first), list.size());
    if (word.starts_with(list.substr(first, end - first))) return true;
    first = end + 1;
  }
  return false;
}

std::string word_at(const NamedTensor& tensor, const std::string& name) {
  const auto value = tensor.attributes.find(name);
  return value != tensor.attributes.end() && value->is_object() ? value->value("_type", "") : "";
}

bool quantizes_x(const NamedTensor& tensor) {
  const auto kwargs = tensor.attributes.find("act_quant_kwargs");
  const bool below_float8 =
      data_name(tensor.attributes.value("activation_dtype", Json())) == "float8_e4m3fn" ||
      any_payload(tensor, {"row_scale"});
  const auto of_intx = tensor.attributes.find("activation_quantization");
  return tensor.type == kWrapper || below_float8 ||
         (kwargs != tensor.attributes.end() && !kwargs->is_null()) ||
         (of_intx != tensor.attributes.end() && !of_intx->is_null());
}

std::string packing_contradiction(const std::string& cls, const TorchAoQuantization& said) {
  for (const char* key : {"int4_packing_format", "packing_format"}) {
    const std::string word = data_name(said.arguments.value(key, Json()));
    for (const Packing& packing : kInt4Packings)
      if (packing.word == word && !holds_word(packing.classes, cls))
        return "is " + cls + ", which packing " + word + " does not make";
  }
  return "";
}

// Returns "Int4CPULayout", which makes Int4CPUAQTTensorImpl: an object, or under a string [name, fields].
std::string layout_of(const TorchAoQuantization& said) {
  const Json layout = said.arguments.value("layout", Json());
  const Json name = layout.is_object()                     ? layout.value("_type", Json())
                    : layout.is_array() && !layout.empty() ? layout.front()
                                                           : Json();
  return name.is_string() ? name.get<std::string>() : "";
}

std::string class_contradiction(const NamedTensor& tensor, const Makes& makes,
                                const TorchAoQuantization& said) {
  const bool wrapped = tensor.type == kWrapper;
  const std::string at = wrapped ? "original_weight_tensor." : "";
  const std::string cls = wrapped ? word_at(tensor, "original_weight_tensor") : tensor.type;
  const bool activations = quantizes_x(tensor);
  if (activations != makes.activations)
    return std::string(activations ? "quantizes" : "does not quantize") + " its activations";
  const std::string version = said.version ? std::to_string(*said.version) : "";
  if (holds_word(makes.classes, cls)) {
    if (makes.by_version && said.version && *said.version < 2)
      return "is " + cls + ", which version " + version + " does not make";
    return makes.by_version && said.name == "Int4WeightOnlyConfig" ? packing_contradiction(cls, said) : "";
  }
  if (cls != kFirstGeneration) return "is " + cls;
  if (makes.by_version && said.version && *said.version >= 2)
    return "is " + cls + ", which version " + version + " does not make";
  std::string impl = word_at(tensor, at + "tensor_impl");
  if (impl.empty()) impl = word_at(tensor, at + "layout_tensor");
  if (!begins_with_one_of(makes.layouts, impl)) return "is " + cls + " with " + impl;
  const std::string layout = layout_of(said);
  const std::string_view stem = std::string_view(layout).substr(0, layout.rfind("Layout"));
  if (impl.starts_with(stem)) return "";
  return "is " + cls + " with " + impl + ", which " + layout + " does not make";
}

// The number of elements in each dimension that share a scale.
std::vector<int64_t> block_of(const NamedTensor& tensor) {
  for (const char* key : {"block_size", "original_weight_tensor.block_size"})
    if (std::vector<int64_t> found = list_of(tensor, key); !found.empty()) return found;
  return {};
}

// Returns the block that a granularity asks of a weight; empty for unknown ones.
std::vector<int64_t> block_of_granularity(const std::vector<int64_t>& shape, const Json& granularity) {
  if (!granularity.is_object() || !granularity.contains("_type") || !granularity["_type"].is_string())
    return {};
  const std::string kind = granularity["_type"];
  const Json data = granularity.value("_data", Json::object());
  const auto number = [&](const char* key, int64_t usual) {
    return data.is_object() && data.contains(key) && data[key].is_number_integer() ? data[key].get<int64_t>()
                                                                                   : usual;
  };
  if (kind == "PerTensor") return shape;
  std::vector<int64_t> block(shape.size(), 1);
  if (kind == "PerRow" && number("dim", -1) == -1)
    block.back() = shape.back();
  else if (kind == "PerGroup" && number("group_size", 0) > 0)
    block.back() = number("group_size", 0);
  else if (kind == "PerAxis" && number("axis", -1) == 0)
    std::copy(shape.begin() + 1, shape.end(), block.begin() + 1);
  else
    return {};
  return block;
}

std::string words_of(const std::vector<int64_t>& block) { return Json(block).dump(); }

std::string block_contradiction(const NamedTensor& tensor, const TorchAoQuantization& said) {
  const std::vector<int64_t> block = block_of(tensor);
  if (block.empty() || block.size() != tensor.shape.size()) return "";
  const Json group = said.arguments.value("group_size", Json());
  if (group.is_number_integer()) {
    const int64_t want = group == -1 ? tensor.shape.back() : group.get<int64_t>();
    return block.back() == want
               ? ""
               : "has groups of " + std::to_string(block.back()) + ", not " + std::to_string(want);
  }
  Json granularity = said.arguments.value("weight_granularity", Json());
  if (granularity.is_null()) granularity = said.arguments.value("granularity", Json());
  if (granularity.is_array() && !granularity.empty()) granularity = granularity.back();  // x's, the weight's
  const std::vector<int64_t> want = block_of_granularity(tensor.shape, granularity);
  if (want.empty() || want == block) return "";
  return "has a scale for each block of " + words_of(block) + ", not " + words_of(want);
}

// Compares weight_dtype, a float8 type or intN.
std::string dtype_contradiction(const NamedTensor& tensor, const TorchAoQuantization& said) {
  const std::string want = data_name(said.arguments.value("weight_dtype", Json()));
  std::string got = data_name(tensor.attributes.value("target_dtype", Json()));
  if (want.starts_with("float8_"))
    for (const auto& part : tensor.payload)
      if (part.name.ends_with("qdata") || part.name.ends_with("float8_data"))
        got = dtype_name(part.tensor.dtype);
  return want.empty() || got.empty() || want == got ? "" : "has codes of " + got + ", not " + want;
}

}  // namespace

std::string recipe_contradiction(const NamedTensor& tensor, const TorchAoQuantization& said) {
  const auto makes = std::ranges::find_if(kMakes, [&](const Makes& candidate) {
    return candidate.object == said.name || candidate.text == said.name;
  });
  if (makes == kMakes.end()) return "";
  std::string what = class_contradiction(tensor, *makes, said);
  if (what.empty()) what = block_contradiction(tensor, said);
  if (what.empty()) what = dtype_contradiction(tensor, said);
  return what;
}

}  // namespace qcts
