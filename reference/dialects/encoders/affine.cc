// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.5.0 to 0.17.0: dtypes/affine_quantized_tensor.py AffineQuantizedTensor around a tensor of one
// layout, and quantization/linear_activation_quantized_tensor.py. The classes were renamed and moved in
// 0.7.0, Int4CPULayout moved in 0.8.0. int8_weight_only stores int64 zero points that are 0;
// int8_dynamic_activation_int8_weight does so up to 0.8.0, and stores none since 0.9.0. 0.16.0 and later load
// int4 in these classes, but write none.
#include "reference/dialects/encoders/affine_state.h"

namespace qcts {
namespace {

constexpr LayoutClasses cpu_classes(std::string_view module) {
  return {module, "Int4CPUAQTTensorImpl", module, "Int4CPULayout"};
}
constexpr LayoutClasses kCpu07 = cpu_classes(kTilesModule);
constexpr LayoutClasses kCpu08 = cpu_classes("torchao.dtypes.uintx.int4_cpu_layout");

// Encoders of int8.

bool makes_int8(const Scheme& scheme, Layout layout, Policy activation) {
  return is_int8_v1(scheme) && layout == kPlain && activation == kWeightOnly;
}
bool makes_int8_05(const Scheme& scheme, Layout layout, Policy activation) {
  return makes_int8(scheme, layout, activation) && scheme.group() == 0;
}
bool makes_int8_dynamic(const Scheme& scheme, Layout layout, Policy activation) {
  return is_int8_v1(scheme) && layout == kPlain && activation != kWeightOnly;
}
bool makes_int8_dynamic_05(const Scheme& scheme, Layout layout, Policy activation) {
  return is_int8_v1(scheme) && scheme.group() == 0 && layout == kPlain && activation == "dyn_row_sym_127";
}

Json int8_state(const SchemeTensor& tensor, const Names& names, bool zero_points) {
  std::vector<int64_t> blocks = {tensor.n};
  const int64_t across = tensor.scheme->group() ? tensor.k / tensor.scheme->group() : 1;
  if (across > 1) blocks.push_back(across);  // torchao drops a dimension of one group
  Json inner = Json::object();
  inner["int_data"] = plane_as("qdata", DType::int8, {tensor.n, tensor.k});
  inner["scale"] = plane_as("scale", tensor.dtype, blocks);
  inner["zero_point"] = zero_points ? plane_as("zero_point", DType::int64, blocks) : Json(nullptr);
  inner[names.layout_attribute] = layout_json(names.plain, Json::object());
  return affine_state(
      tensor, names,
      wrapper_here(names.plain.module, names.plain.name, DType::int8, {tensor.n, tensor.k}, std::move(inner)),
      nullptr, nullptr, zero_points ? "INT" : "NONE");
}

Json int8_dynamic_state(const SchemeTensor& tensor, const Names& names, bool zero_points) {
  const bool asymmetric = tensor.activation == "dyn_row_asym";
  return activation_state(
      tensor, int8_state(tensor, names, zero_points),
      asymmetric ? "_int8_asymm_per_token_quant" : "_int8_symm_per_token_reduced_range_quant");
}

Json int8_dynamic_state_07(const SchemeTensor& tensor, bool zero_points) {
  Json dict = int8_dynamic_state(tensor, kNames07, zero_points);
  dict["quant_kwargs"] = Json::object();
  return dict;
}

// Encoders of int4.

bool makes_tiles(const Scheme& scheme, Layout layout, Policy activation) {
  return scheme.family() == "int4_tinygemm" && activation == kWeightOnly && layout == "tile_packed_4d_v1";
}
bool makes_cpu_pack(const Scheme& scheme, Layout layout, Policy activation) {
  return scheme.family() == "int4_tinygemm" && activation == kWeightOnly && layout.name().starts_with("cpu_");
}

Json int4_state(const SchemeTensor& tensor, const Names& names, const LayoutClasses& classes, Json layout) {
  const std::vector<PlaneSpec> specs =
      tensor.scheme->plane_specs({tensor.dtype, tensor.n, tensor.k}, tensor.layout);
  Json inner = Json::object();
  inner["packed_weight"] = plane_as("qdata", specs[0].dtype, specs[0].shape);
  inner["scale_and_zero"] = plane_as("scale_and_zero", specs[1].dtype, specs[1].shape);
  inner["transposed"] = false;
  inner[names.layout_attribute] = layout_json(classes, std::move(layout));
  return affine_state(
      tensor, names,
      wrapper_here(classes.module, classes.name, specs[0].dtype, specs[0].shape, std::move(inner)), 0, 15,
      "FLOAT");
}

Json tiles_state(const SchemeTensor& tensor, const Names& names) {
  return int4_state(tensor, names, names.tiles, {{"inner_k_tiles", 8}});
}
Json cpu_pack_state(const SchemeTensor& tensor, const LayoutClasses& classes) {
  return int4_state(tensor, kNames07, classes, Json::object());
}

}  // namespace

Json layout_json(const LayoutClasses& classes, Json data) {
  Json object = typed_json(classes.layout_class, std::move(data));
  object["_module"] = classes.layout_module;
  return object;
}

Json of_one_weight(Json layout) {
  layout["_shared"] = false;
  return layout;
}

Json shared_object(std::string_view type, Json data) {
  Json object = typed_json(type, std::move(data));
  object["_shared"] = true;
  return object;
}

Json affine_state(const SchemeTensor& tensor, const Names& names, Json inner, Json code_min, Json code_max,
                  const char* domain) {
  Json dict = Json::object();
  dict[names.inner] = std::move(inner);
  dict["block_size"] = typed_json("tuple", group_block(tensor));
  dict["quant_min"] = std::move(code_min);
  dict["quant_max"] = std::move(code_max);
  dict["zero_point_domain"] = typed_json("ZeroPointDomain", domain);
  return dict;
}

Json activation_state(const SchemeTensor& tensor, Json weight, std::string_view function) {
  Json dict = Json::object();
  dict["original_weight_tensor"] =
      wrapper_here(kAffineModule, kAffine, tensor.dtype, {tensor.n, tensor.k}, std::move(weight));
  dict["input_quant_func"] =
      typed_json("function", "torchao.quantization.quant_api." + std::string(function));
  return dict;
}

bool is_int8_v1(const Scheme& scheme) {
  return scheme.family() == "int8_row_v1" || scheme.family() == "int8_group_v1";
}

bool holds_first_generation(const TorchaoClass& cls) {
  return cls.name == kAffine || cls.name == kActivation || cls.name == kStaticActivation;
}

extern const Encoder kEncoder_affine_int8 = {
    affine_class("torchao_v1 torchao_0.9 torchao_0.8 torchao_0.7", "torchao 0.7.0 to 0.17.0"), makes_int8,
    [](const SchemeTensor& tensor) { return int8_state(tensor, kNames07, true); }};
extern const Encoder kEncoder_affine_int8_05 = {
    affine_class("torchao_0.6 torchao_0.5", "torchao 0.5.0 and 0.6.1"), makes_int8_05,
    [](const SchemeTensor& tensor) { return int8_state(tensor, kNames05, true); }};

extern const Encoder kEncoder_affine_int8_dynamic = {
    activation_class("torchao_v1 torchao_0.9", "torchao 0.9.0 to 0.17.0"), makes_int8_dynamic,
    [](const SchemeTensor& tensor) { return int8_dynamic_state_07(tensor, false); }};
extern const Encoder kEncoder_affine_int8_dynamic_07 = {
    activation_class("torchao_0.8 torchao_0.7", "torchao 0.7.0 and 0.8.0"), makes_int8_dynamic,
    [](const SchemeTensor& tensor) { return int8_dynamic_state_07(tensor, true); }};
extern const Encoder kEncoder_affine_int8_dynamic_05 = {
    activation_class("torchao_0.6 torchao_0.5", "torchao 0.5.0 and 0.6.1"), makes_int8_dynamic_05,
    [](const SchemeTensor& tensor) { return int8_dynamic_state(tensor, kNames05, true); }};

extern const Encoder kEncoder_affine_int4_tiles = {
    affine_class("torchao_v1 torchao_0.9 torchao_0.8 torchao_0.7", "torchao 0.7.0 to 0.15.0"), makes_tiles,
    [](const SchemeTensor& tensor) { return tiles_state(tensor, kNames07); }};
extern const Encoder kEncoder_affine_int4_tiles_05 = {
    affine_class("torchao_0.6 torchao_0.5", "torchao 0.5.0 and 0.6.1"), makes_tiles,
    [](const SchemeTensor& tensor) { return tiles_state(tensor, kNames05); }};
extern const Encoder kEncoder_affine_int4_cpu = {
    affine_class("torchao_v1 torchao_0.9 torchao_0.8", "torchao 0.8.0 to 0.15.0"), makes_cpu_pack,
    [](const SchemeTensor& tensor) { return cpu_pack_state(tensor, kCpu08); }};
extern const Encoder kEncoder_affine_int4_cpu_07 = {
    affine_class("torchao_0.7", "torchao 0.7.0"), makes_cpu_pack,
    [](const SchemeTensor& tensor) { return cpu_pack_state(tensor, kCpu07); }};

}  // namespace qcts
