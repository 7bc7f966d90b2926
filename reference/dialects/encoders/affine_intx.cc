// SPDX-License-Identifier: BSD-3-Clause
// Integer weights below eight bits, and those with a range, of torchao 0.9.0 and 0.13.0:
// AffineQuantizedTensor in PlainLayout (int8_dynamic_activation_int4_weight), in QDQLayout (0.13.0
// IntxWeightOnlyConfig and Int8DynamicActivationIntxWeightConfig, dtypes/uintx/q_dq_layout.py) and in
// CutlassInt4PackedLayout (int4_dynamic_activation_int4_weight, dtypes/uintx/cutlass_int4_packed_layout.py).
#include <stdexcept>

#include "reference/dialects/encoders/affine_state.h"

namespace qcts {
namespace {

constexpr std::string_view kQdqModule = "torchao.dtypes.uintx.q_dq_layout";
constexpr LayoutClasses kQdq = {kQdqModule, "QDQTensorImpl", kQdqModule, "QDQLayout"};
constexpr std::string_view kCutlassModule = "torchao.dtypes.uintx.cutlass_int4_packed_layout";
constexpr LayoutClasses kCutlass = {kCutlassModule, "Int4PackedTensorImpl", kCutlassModule,
                                    "CutlassInt4PackedLayout"};

// The function of quant_api.py for a policy; empty: none.
struct PolicyFunction {
  std::string_view policy, function;
};
constexpr PolicyFunction kTokenFunctions[] = {{"dyn_token_asym_s32", "_int8_asymm_per_token_quant"},
                                              {"dyn_token_sym_127_s32", "_int8_symm_per_token_quant"}};
constexpr PolicyFunction kCutlassFunctions[] = {{"dyn_token_sym_s32", "_int8_symm_cutlass_quant"},
                                                {"dyn_token_sym_b4_s32", "_int4_symm_cutlass_quant"}};
constexpr PolicyFunction kCutlassFunctions09[] = {
    {"dyn_token_sym_127", "_int8_symm_per_token_reduced_range_quant_cutlass"},
    {"dyn_token_sym_b4", "_int4_symm_per_token_quant_cutlass"}};

std::string_view function_in(std::span<const PolicyFunction> functions, Policy activation) {
  for (const PolicyFunction& known : functions)
    if (known.policy == activation.name()) return known.function;
  return "";
}

bool is_plain_intx(const Scheme& scheme, Layout layout) {
  return scheme.family() == "intx" && layout == kPlain;
}
bool is_symmetric(const Scheme& scheme) { return scheme.params().mapping == Mapping::symmetric; }
bool is_wide(const Scheme& scheme) { return scheme.params().scale.has_value(); }

bool makes_8da4w(const Scheme& scheme, Layout layout, Policy activation) {
  return is_plain_intx(scheme, layout) && scheme.params().bits == 4 && !is_wide(scheme) &&
         !function_in(kTokenFunctions, activation).empty();
}
// IntxWeightOnlyConfig moves the range of an asymmetric weight away from zero, which intx does not.
bool makes_qdq(const Scheme& scheme, Layout layout, Policy activation) {
  return is_plain_intx(scheme, layout) && is_symmetric(scheme) && activation == kWeightOnly;
}
bool makes_qdq_dynamic_b4(const Scheme& scheme, Layout layout, Policy activation) {
  return is_plain_intx(scheme, layout) && is_symmetric(scheme) &&
         !function_in(kTokenFunctions, activation).empty();
}
bool makes_qdq_dynamic(const Scheme& scheme, Layout layout, Policy activation) {
  return scheme.params().bits != 4 && makes_qdq_dynamic_b4(scheme, layout, activation);
}
bool makes_cutlass(const Scheme& scheme, Layout layout, Policy activation) {
  return is_plain_intx(scheme, layout) && !function_in(kCutlassFunctions, activation).empty();
}
bool makes_cutlass_09(const Scheme& scheme, Layout layout, Policy activation) {
  return is_plain_intx(scheme, layout) && !function_in(kCutlassFunctions09, activation).empty();
}

DType scale_dtype(const SchemeTensor& tensor) { return tensor.scheme->params().scale.value_or(tensor.dtype); }

// `layout`: the layout object. `zero_points`: their type in the file; nullopt: none are stored.
Json intx_weight_state(const SchemeTensor& tensor, const LayoutClasses& classes, Json layout,
                       std::optional<DType> zero_points, const char* domain = "INT") {
  std::vector<int64_t> blocks = {tensor.n};
  const int64_t across = tensor.scheme->group() ? tensor.k / tensor.scheme->group() : 1;
  if (across > 1) blocks.push_back(across);  // torchao drops a dimension of one group
  const bool pairs = classes.name == kCutlass.name;
  const std::vector<int64_t> stored = {tensor.n, pairs ? tensor.k / 2 : tensor.k};
  Json inner = Json::object();
  inner["int_data"] = pairs ? pairs_here(stored) : plane_as("qdata", DType::int8, stored);
  inner["scale"] = plane_as("scale", scale_dtype(tensor), blocks);
  if (zero_points) inner["zero_point"] = plane_as("zero_point", *zero_points, blocks);
  inner[kNames07.layout_attribute] = std::move(layout);
  const SchemeParams& params = tensor.scheme->params();
  return affine_state(tensor, kNames07,
                      wrapper_here(classes.module, classes.name, DType::int8, stored, std::move(inner)),
                      params.code_min, params.code_max, domain);
}

Json intx_activation_state(const SchemeTensor& tensor, Json weight, std::string_view function) {
  Json dict = activation_state(tensor, std::move(weight), function);
  dict["quant_kwargs"] = Json::object();
  return dict;
}

// Without a zero_point_dtype, 0.9.0 stores zero points in the weight's dtype, and so does 0.13.0 with those
// of a symmetric weight; those of an asymmetric one are int32.
Json state_8da4w(const SchemeTensor& tensor, bool first) {
  const DType zero_points = first || is_symmetric(*tensor.scheme) ? tensor.dtype : DType::int32;
  return intx_activation_state(
      tensor,
      intx_weight_state(tensor, kNames07.plain, layout_json(kNames07.plain, Json::object()), zero_points),
      function_in(kTokenFunctions, tensor.activation));
}

Json state_qdq(const SchemeTensor& tensor) {
  return intx_weight_state(tensor, kQdq, layout_json(kQdq, Json::object()), DType::int8);
}

// Each weight has its own layout.
Json state_qdq_dynamic(const SchemeTensor& tensor) {
  return intx_activation_state(
      tensor, intx_weight_state(tensor, kQdq, of_one_weight(layout_json(kQdq, Json::object())), DType::int8),
      function_in(kTokenFunctions, tensor.activation));
}

Json state_cutlass(const SchemeTensor& tensor) {
  if (scale_dtype(tensor) != DType::float32)
    throw std::invalid_argument("torchao 0.13.0 stores float32 scales here: use intx_b4_axis_s32_sym");
  Json weight = intx_weight_state(tensor, kCutlass, of_one_weight(layout_json(kCutlass, Json::object())),
                                  std::nullopt, "NONE");
  weight["block_size"] = group_block(tensor);
  return intx_activation_state(tensor, std::move(weight), function_in(kCutlassFunctions, tensor.activation));
}

Json state_cutlass_09(const SchemeTensor& tensor) {
  const bool int4_x = tensor.activation == "dyn_token_sym_b4";
  return intx_activation_state(tensor,
                               intx_weight_state(tensor, kCutlass, layout_json(kCutlass, Json::object()),
                                                 std::nullopt, int4_x ? "NONE" : "INT"),
                               function_in(kCutlassFunctions09, tensor.activation));
}

constexpr TorchaoClass in_qdq(TorchaoClass cls) {
  cls.in_qdq_layout = true;
  return cls;
}

constexpr std::string_view kWritten = "torchao 0.13.0", kWritten09 = "torchao 0.9.0";

}  // namespace

extern const Encoder kEncoder_affine_8da4w = {
    activation_class("torchao_v1", kWritten, WeightRecipe::least_scale_eps), makes_8da4w,
    [](const SchemeTensor& tensor) { return state_8da4w(tensor, false); }};
extern const Encoder kEncoder_affine_8da4w_09 = {
    activation_class("torchao_0.9", kWritten09, WeightRecipe::least_scale_2_23), makes_8da4w,
    [](const SchemeTensor& tensor) { return state_8da4w(tensor, true); }};
extern const Encoder kEncoder_affine_qdq = {
    in_qdq(affine_class("torchao_v1 torchao_v1_qdq", kWritten, WeightRecipe::least_scale_eps)), makes_qdq,
    state_qdq};
extern const Encoder kEncoder_affine_qdq_dynamic = {
    in_qdq(activation_class("torchao_v1", kWritten, WeightRecipe::least_scale_eps)), makes_qdq_dynamic,
    state_qdq_dynamic};
extern const Encoder kEncoder_affine_qdq_dynamic_b4 = {
    in_qdq(activation_class("torchao_v1_qdq", kWritten, WeightRecipe::least_scale_eps)), makes_qdq_dynamic_b4,
    state_qdq_dynamic};
extern const Encoder kEncoder_affine_cutlass = {
    activation_class("torchao_v1", kWritten, WeightRecipe::least_scale_2_23), makes_cutlass, state_cutlass};
extern const Encoder kEncoder_affine_cutlass_09 = {
    activation_class("torchao_0.9", kWritten09, WeightRecipe::least_scale_2_23), makes_cutlass_09,
    state_cutlass_09};

}  // namespace qcts
