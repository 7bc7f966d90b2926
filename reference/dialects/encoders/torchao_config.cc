// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/encoders/torchao_config.h"

#include <string>

#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

using SortedJson = nlohmann::json;

SortedJson typed(const char* type, SortedJson data) { return {{"_type", type}, {"_data", std::move(data)}}; }

SortedJson versioned(const char* type, int version, SortedJson data) {
  SortedJson object = typed(type, std::move(data));
  object["_version"] = version;
  return object;
}

SortedJson per_row() { return versioned("PerRow", 1, {{"dim", -1}}); }
SortedJson per_tensor() { return versioned("PerTensor", 1, SortedJson::object()); }
SortedJson per_group(int64_t size) { return versioned("PerGroup", 1, {{"group_size", size}}); }
SortedJson dtype(const std::string& name) { return typed("torch.dtype", name); }

SortedJson empty_layout(const char* name) { return versioned(name, 1, SortedJson::object()); }

// transformers 4.57.1 names torchao's first recipes by their functions.
SortedJson named(const char* recipe, SortedJson arguments) {
  return {{"quant_type", recipe}, {"quant_type_kwargs", std::move(arguments)}};
}

SortedJson group_argument(const Scheme& scheme) {
  return scheme.group() ? SortedJson{{"group_size", scheme.group()}} : SortedJson::object();
}

std::optional<SortedJson> first_int8_config(const Scheme& scheme, Policy activation) {
  if (activation == kWeightOnly) return named("int8_weight_only", group_argument(scheme));
  if (scheme.group() != 0) return std::nullopt;
  if (activation == "dyn_row_sym_127")
    return named("int8_dynamic_activation_int8_weight", SortedJson::object());
  if (activation != "dyn_row_asym") return std::nullopt;
  return versioned("Int8DynamicActivationInt8WeightConfig", 1,
                   {{"act_mapping_type", typed("MappingType", "ASYMMETRIC")}});
}

// The name is enough for tiles; transformers adds the layout of a CPU only when it quantizes itself.
std::optional<SortedJson> first_int4_config(const Scheme& scheme, Layout layout, Policy activation) {
  if (activation != kWeightOnly) return std::nullopt;
  if (layout == "tile_packed_4d_v1") return named("int4_weight_only", group_argument(scheme));
  if (!layout.name().starts_with("cpu_")) return std::nullopt;
  return versioned("Int4WeightOnlyConfig", 1,
                   {{"group_size", scheme.group()}, {"layout", empty_layout("Int4CPULayout")}});
}

// A range of x (granularity) is left out where it is the default, PerTensor.
std::optional<SortedJson> first_float8_config(const Scheme& scheme, Policy activation) {
  const SortedJson element = dtype(std::string(dtype_name(*scheme.params().element)));
  if (activation == kWeightOnly) return versioned("Float8WeightOnlyConfig", 1, {{"weight_dtype", element}});
  if (!activation.name().starts_with("dyn_")) return std::nullopt;  // the scale of x is a tensor
  SortedJson data = {{"activation_dtype", element}, {"weight_dtype", element}};
  if (activation.name().starts_with("dyn_row"))
    data["granularity"] = versioned("PerRow", 1, SortedJson::object());
  return versioned("Float8DynamicActivationFloat8WeightConfig", 1, std::move(data));
}

std::optional<SortedJson> first_intx_config(const TorchaoClass& cls, const Scheme& scheme,
                                            Policy activation) {
  const SchemeParams& params = scheme.params();
  const std::string_view policy = activation.name();
  const SortedJson granularity =
      scheme.group() ? per_group(scheme.group()) : versioned("PerAxis", 1, {{"axis", 0}});
  const SortedJson of_x =
      typed("MappingType", policy.find("_asym") != policy.npos ? "ASYMMETRIC" : "SYMMETRIC");
  SortedJson scale = params.scale ? dtype(std::string(dtype_name(*params.scale))) : SortedJson(nullptr);
  SortedJson data = {{"weight_dtype", dtype("int" + std::to_string(params.bits))}};
  if (activation == kWeightOnly) {
    data["granularity"] = granularity;
    data["scale_dtype"] = std::move(scale);
    return versioned("IntxWeightOnlyConfig", 1, std::move(data));
  }
  if (policy == "dyn_token_sym_b4_s32" || policy == "dyn_token_sym_b4")
    return versioned("Int4DynamicActivationInt4WeightConfig", 1, SortedJson::object());
  if (policy == "dyn_token_sym_s32" || policy == "dyn_token_sym_127")
    return versioned("Int8DynamicActivationInt4WeightConfig", 1,
                     {{"act_mapping_type", of_x},
                      {"group_size", -1},
                      {"layout", empty_layout("CutlassInt4PackedLayout")}});
  if (cls.in_qdq_layout) {
    data["act_mapping_type"] = of_x;
    data["weight_granularity"] = granularity;
    data["weight_scale_dtype"] = std::move(scale);
    return versioned("Int8DynamicActivationIntxWeightConfig", 1, std::move(data));
  }
  const char* mapping = params.mapping == Mapping::asymmetric ? "ASYMMETRIC" : "SYMMETRIC";
  return versioned("Int8DynamicActivationInt4WeightConfig", 1,
                   {{"act_mapping_type", of_x},
                    {"group_size", scheme.group() ? scheme.group() : -1},
                    {"mapping_type", typed("MappingType", mapping)}});
}

std::optional<SortedJson> first_generation_config(const TorchaoClass& cls, const Scheme& scheme,
                                                  Layout layout, Policy activation) {
  const std::string_view family = scheme.family();
  if (is_int8_v1(scheme)) return first_int8_config(scheme, activation);
  if (family == "int4_tinygemm") return first_int4_config(scheme, layout, activation);
  if (family == "fp8_row" || family == "fp8") return first_float8_config(scheme, activation);
  if (family == "intx") return first_intx_config(cls, scheme, activation);
  return std::nullopt;
}

std::optional<SortedJson> int8_config(const Scheme& scheme, Policy activation) {
  const std::string_view family = scheme.family();
  const bool reduced = family.ends_with("_reduced"), rows = family.starts_with("int8_row");
  const SortedJson granularity = scheme.group() ? per_group(scheme.group()) : rows ? per_row() : per_tensor();
  if (activation == kWeightOnly) {
    if (reduced) return std::nullopt;
    return versioned("Int8WeightOnlyConfig", 2,
                     {{"granularity", granularity}, {"group_size", nullptr}, {"set_inductor_config", true}});
  }
  const std::string same = rows ? "dyn_row_" : "dyn_tensor_";
  if (activation != same + "sym" && activation != same + "asym") return std::nullopt;
  const char* mapping = activation == same + "sym" ? "SYMMETRIC" : "ASYMMETRIC";
  return versioned("Int8DynamicActivationInt8WeightConfig", 2,
                   {{"act_mapping_type", typed("MappingType", mapping)},
                    {"granularity", granularity},
                    {"reduce_range", reduced},
                    {"set_inductor_config", true},
                    {"weight_only_decode", false}});
}

std::optional<SortedJson> float8_config(const Scheme& scheme, Layout layout, Policy activation) {
  const bool tensor = scheme.params().group_rows == 0, blocks = scheme.params().group_rows > 1;
  if (layout != kPlain || blocks) return std::nullopt;
  const SortedJson element = dtype(std::string(dtype_name(*scheme.params().element)));
  const SortedJson granularity = scheme.group() ? per_group(scheme.group())
                                 : tensor       ? per_tensor()
                                                : per_row();
  if (activation == kWeightOnly)
    return versioned(
        "Float8WeightOnlyConfig", 2,
        {{"granularity", granularity}, {"set_inductor_config", true}, {"weight_dtype", element}});
  if (activation != (tensor ? "dyn_tensor" : "dyn_row")) return std::nullopt;
  return versioned(
      "Float8DynamicActivationFloat8WeightConfig", 2,
      {{"activation_dtype", element},
       {"activation_value_lb", nullptr},
       {"activation_value_ub", nullptr},
       {"alg_id", 0},
       {"granularity", SortedJson::array({granularity, granularity})},
       {"kernel_preference", typed("KernelPreference", "AUTO")},
       {"mm_config", versioned("Float8MMConfig", 1,
                               {{"emulate", false}, {"pad_inner_dim", false}, {"use_fast_accum", true}})},
       {"packing_format", typed("Float8PackingFormat", "PLAIN")},
       {"set_inductor_config", true},
       {"weight_dtype", element}});
}

std::optional<SortedJson> intx_config(const Scheme& scheme, Policy activation) {
  const SchemeParams& params = scheme.params();
  const SortedJson granularity =
      scheme.group() ? per_group(scheme.group()) : versioned("PerAxis", 1, {{"axis", 0}});
  const char* mapping = params.mapping == Mapping::symmetric    ? "SYMMETRIC"
                        : params.mapping == Mapping::asymmetric ? "ASYMMETRIC"
                                                                : "SYMMETRIC_NO_CLIPPING_ERR";
  const SortedJson scale = params.scale ? dtype(std::string(dtype_name(*params.scale))) : SortedJson(nullptr);
  SortedJson data = {{"intx_choose_qparams_algorithm", typed("IntxChooseQParamsAlgorithm", "AFFINE")},
                     {"intx_packing_format", typed("IntxPackingFormat", "UNPACKED_TO_INT8")},
                     {"weight_dtype", dtype("int" + std::to_string(params.bits))}};
  if (activation == kWeightOnly) {
    data["granularity"] = granularity;
    data["mapping_type"] = typed("MappingType", mapping);
    data["scale_dtype"] = scale;
    return versioned("IntxWeightOnlyConfig", 2, std::move(data));
  }
  if (activation != "dyn_token_asym") return std::nullopt;
  data["act_mapping_type"] = typed("MappingType", "ASYMMETRIC");
  data["weight_granularity"] = granularity;
  data["weight_mapping_type"] = typed("MappingType", mapping);
  data["weight_scale_dtype"] = scale;
  return versioned("Int8DynamicActivationIntxWeightConfig", 2, std::move(data));
}

// transformers cannot read PrototypeInt4WeightOnlyConfig, which makes the packs of a CPU: its module is not
// among those that torchao's config_from_dict searches. Under Int4WeightOnlyConfig it loads the weights as
// they are stored.
std::optional<SortedJson> int4_config(const Scheme& scheme, Layout layout, Policy activation) {
  if (activation != kWeightOnly || scheme.name().find("_sym_") != std::string_view::npos) return std::nullopt;
  const bool tinygemm = scheme.family() == "int4_tinygemm";
  const bool plain =
      tinygemm ? layout.name().starts_with("cpu_") : scheme.family() == "int4_plain" && layout == kPlain;
  const bool tiles = tinygemm && layout == "tile_packed_4d";
  const bool words = scheme.family() == "int4_int32" && layout == kPlain;
  if (!plain && !tiles && !words) return std::nullopt;
  const char* format = tiles ? "TILE_PACKED_TO_4D" : words ? "PLAIN_INT32" : "PLAIN";
  return versioned("Int4WeightOnlyConfig", 2,
                   {{"group_size", scheme.group()},
                    {"int4_choose_qparams_algorithm", typed("Int4ChooseQParamsAlgorithm", "TINYGEMM")},
                    {"int4_packing_format", typed("Int4PackingFormat", format)},
                    {"int4_tile_packed_ntile", 8},
                    {"set_inductor_config", true}});
}

}  // namespace

std::optional<SortedJson> torchao_config(const TorchaoClass& cls, const Scheme& scheme, Layout layout,
                                         Policy activation) {
  if (holds_first_generation(cls)) return first_generation_config(cls, scheme, layout, activation);
  const std::string_view family = scheme.family();
  if (family.starts_with("int8_")) return int8_config(scheme, activation);
  if (family == "fp8_row" || family == "fp8") return float8_config(scheme, layout, activation);
  if (family == "intx") return intx_config(scheme, activation);
  if (family.starts_with("int4_")) return int4_config(scheme, layout, activation);
  return std::nullopt;
}

SortedJson quantization_config(const SortedJson& config, const SortedJson& not_converted) {
  SortedJson whole = {{"include_input_output_embeddings", false},
                      {"modules_to_not_convert", not_converted},
                      {"quant_method", "torchao"},
                      {"untie_embedding_weights", false}};
  if (config.contains("quant_type"))
    whole.update(config);
  else
    whole["quant_type"] = {{"default", config}};
  return whole;
}

}  // namespace qcts
