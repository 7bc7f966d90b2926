// SPDX-License-Identifier: BSD-3-Clause
// Float8 weights of torchao 0.9.0 and 0.13.0: AffineQuantizedTensor around dtypes/floatx/float8_layout.py,
// alone, in LinearActivationQuantizedTensor, and in WeightTensorWithLinearActivationQuantizationMetadata
// (quantization/weight_tensor_linear_activation_quantization.py) with the scale of x. 0.9.0 stores the range
// of the codes, scales without a dimension of one block, and those of float8_weight_only in the weight's
// dtype.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/encoders/affine_state.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr std::string_view kFloat8Module = "torchao.dtypes.floatx.float8_layout";
constexpr LayoutClasses kFloat8Classes = {kFloat8Module, "Float8AQTTensorImpl", kFloat8Module,
                                          "Float8Layout"};
constexpr std::string_view kStaticModule =
    "torchao.quantization.weight_tensor_linear_activation_quantization";

bool is_of_tensor(const Scheme& scheme) { return scheme.params().group_rows == 0; }

bool has_plain_float8(const Scheme& scheme, Layout layout) {
  const bool float8 = scheme.family() == "fp8_row" || scheme.family() == "fp8";
  return float8 && layout == kPlain && scheme.group() == 0 && scheme.params().group_rows <= 1;
}

bool makes_weight_only(const Scheme& scheme, Layout layout, Policy activation) {
  return has_plain_float8(scheme, layout) && !is_of_tensor(scheme) && activation == kWeightOnly;
}
bool makes_dynamic(const Scheme& scheme, Layout layout, Policy activation) {
  return has_plain_float8(scheme, layout) && (activation == "dyn_row" || activation == "dyn_tensor");
}
bool makes_dynamic_09(const Scheme& scheme, Layout layout, Policy activation) {
  return has_plain_float8(scheme, layout) &&
         (activation == "dyn_row_recip" || activation == "dyn_tensor_recip");
}
bool makes_static(const Scheme& scheme, Layout layout, Policy activation) {
  return has_plain_float8(scheme, layout) && activation == "static_tensor";
}
bool makes_static_09(const Scheme& scheme, Layout layout, Policy activation) {
  return has_plain_float8(scheme, layout) && activation == "static_tensor_recip";
}

// One object for all weights of a call of quantize_.
Json mm_config_v1() {
  Json data = Json::object();
  data["emulate"] = false;
  data["use_fast_accum"] = true;
  data["pad_inner_dim"] = false;
  return shared_object("Float8MMConfig", std::move(data));
}

DType code_of(const SchemeTensor& tensor) { return *tensor.scheme->params().element; }

// Each weight has its own layout.
Json weight_state(const SchemeTensor& tensor, bool first, bool narrow) {
  const bool whole = is_of_tensor(*tensor.scheme);
  const std::vector<int64_t> blocks = first   ? (whole ? std::vector<int64_t>() : std::vector{tensor.n})
                                      : whole ? std::vector<int64_t>{1, 1}
                                              : std::vector<int64_t>{tensor.n, 1};
  Json layout = layout_json(
      kFloat8Classes, {{"mm_config", tensor.activation == kWeightOnly ? Json(nullptr) : mm_config_v1()}});
  Json inner = Json::object();
  inner["float8_data"] = plane_as("qdata", code_of(tensor), {tensor.n, tensor.k});
  inner["scale"] = plane_as("scale", narrow ? tensor.dtype : DType::float32, blocks);
  inner["transposed"] = false;
  inner[kNames07.layout_attribute] = of_one_weight(std::move(layout));
  const Json largest = first ? Json(static_cast<int64_t>(float_format(code_of(tensor)).max)) : Json(nullptr);
  const Json least = first ? Json(-largest.get<int64_t>()) : Json(nullptr);
  Json dict = affine_state(tensor, kNames07,
                           wrapper_here(kFloat8Classes.module, kFloat8Classes.name, code_of(tensor),
                                        {tensor.n, tensor.k}, std::move(inner)),
                           least, largest, first ? "NONE" : "INT");
  if (whole) dict["block_size"] = typed_json("torch.Size", Json::array({tensor.n, tensor.k}));
  return dict;
}

// The granularity belongs to the configuration, and the dict to the weight.
Json float8_kwargs(const SchemeTensor& tensor) {
  Json kwargs = Json::object();
  kwargs["activation_granularity"] =
      shared_object(is_of_tensor(*tensor.scheme) ? "PerTensor" : "PerRow", Json::object());
  kwargs["activation_dtype"] = dtype_json(code_of(tensor));
  return kwargs;
}

constexpr std::string_view kFunction = "_input_activation_quant_func_fp8";

Json dynamic_state(const SchemeTensor& tensor, bool first) {
  Json dict = activation_state(tensor, weight_state(tensor, first, false), kFunction);
  dict["quant_kwargs"] = float8_kwargs(tensor);
  return dict;
}

Json static_state(const SchemeTensor& tensor, bool first) {
  const Json dynamic = dynamic_state(tensor, first);
  Json dict = Json::object();
  dict["original_weight_tensor"] = dynamic["original_weight_tensor"];
  dict["input_quant_func_static"] = dynamic["input_quant_func"];
  dict["scale"] = plane_as("act_quant_scale", DType::float32, {});
  dict["zero_point"] = nullptr;
  dict["quant_kwargs"] = dynamic["quant_kwargs"];
  return dict;
}

constexpr std::string_view kWrites = "torchao 0.13.0", kWrites09 = "torchao 0.9.0";

}  // namespace

extern const Encoder kEncoder_affine_float8 = {
    affine_class("torchao_v1", kWrites), makes_weight_only,
    [](const SchemeTensor& tensor) { return weight_state(tensor, false, false); }};
extern const Encoder kEncoder_affine_float8_09 = {
    affine_class("torchao_0.9", kWrites09, WeightRecipe::narrow_reciprocal), makes_weight_only,
    [](const SchemeTensor& tensor) { return weight_state(tensor, true, true); }};
extern const Encoder kEncoder_affine_float8_dynamic = {
    activation_class("torchao_v1", kWrites), makes_dynamic,
    [](const SchemeTensor& tensor) { return dynamic_state(tensor, false); }};
extern const Encoder kEncoder_affine_float8_dynamic_09 = {
    activation_class("torchao_0.9", kWrites09, WeightRecipe::reciprocal), makes_dynamic_09,
    [](const SchemeTensor& tensor) { return dynamic_state(tensor, true); }};
extern const Encoder kEncoder_affine_float8_static = {
    {kStaticModule, kStaticActivation, false, "torchao_v1", kWrites},
    makes_static,
    [](const SchemeTensor& tensor) { return static_state(tensor, false); }};
extern const Encoder kEncoder_affine_float8_static_09 = {
    {kStaticModule, kStaticActivation, false, "torchao_0.9", kWrites09, WeightRecipe::reciprocal},
    makes_static_09,
    [](const SchemeTensor& tensor) { return static_state(tensor, true); }};

}  // namespace qcts
