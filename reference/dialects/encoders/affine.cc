// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.9.0 to 0.17.0, which write one form: dtypes/affine_quantized_tensor.py AffineQuantizedTensor
// around a tensor_impl of dtypes/uintx/plain_layout.py, int4_cpu_layout.py or tensor_core_tiled_layout.py,
// and quantization/linear_activation_quantized_tensor.py. int8_weight_only stores int64 zero points that are
// 0, int8_dynamic_activation_int8_weight none.
#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kAffineModule = "torchao.dtypes.affine_quantized_tensor";
constexpr std::string_view kAffine = "AffineQuantizedTensor";
constexpr std::string_view kWriters = "torchao 0.9.0 to 0.17.0";
constexpr std::string_view kV1 = "torchao_v1";

Json affine_state(const SchemeTensor& tensor, Json impl, Json code_min, Json code_max, const char* domain) {
  Json dict = Json::object();
  dict["tensor_impl"] = std::move(impl);
  dict["block_size"] = typed_json("tuple", group_block(tensor));
  dict["quant_min"] = std::move(code_min);
  dict["quant_max"] = std::move(code_max);
  dict["zero_point_domain"] = typed_json("ZeroPointDomain", domain);
  return dict;
}

bool makes_int8_v1(const Scheme& scheme, Layout layout, Policy activation) {
  return is_int8_v1(scheme) && layout == kPlain && activation == kWeightOnly;
}
bool makes_int8_dynamic_v1(const Scheme& scheme, Layout layout, Policy activation) {
  return is_int8_v1(scheme) && layout == kPlain && activation != kWeightOnly;
}

Json int8_v1(const SchemeTensor& tensor, bool zero_points) {
  std::vector<int64_t> blocks = {tensor.n};
  const int64_t across = tensor.scheme->group() ? tensor.k / tensor.scheme->group() : 1;
  if (across > 1) blocks.push_back(across);  // torchao drops a dimension of one group
  Json impl = Json::object();
  impl["int_data"] = plane_as("qdata", DType::int8, {tensor.n, tensor.k});
  impl["scale"] = plane_as("scale", tensor.dtype, blocks);
  impl["zero_point"] = zero_points ? plane_as("zero_point", DType::int64, blocks) : Json(nullptr);
  impl["_layout"] = typed_json("PlainLayout", Json::object());
  return affine_state(tensor,
                      wrapper_here("torchao.dtypes.uintx.plain_layout", "PlainAQTTensorImpl", DType::int8,
                                   {tensor.n, tensor.k}, std::move(impl)),
                      nullptr, nullptr, zero_points ? "INT" : "NONE");
}

Json state_int8_v1(const SchemeTensor& tensor) { return int8_v1(tensor, true); }

Json state_int8_dynamic_v1(const SchemeTensor& tensor) {
  const bool asymmetric = tensor.activation == "dyn_row_asym";
  Json dict = Json::object();
  dict["original_weight_tensor"] =
      wrapper_here(kAffineModule, kAffine, tensor.dtype, {tensor.n, tensor.k}, int8_v1(tensor, false));
  dict["input_quant_func"] = typed_json(
      "function",
      std::string("torchao.quantization.quant_api.") +
          (asymmetric ? "_int8_asymm_per_token_quant" : "_int8_symm_per_token_reduced_range_quant"));
  dict["quant_kwargs"] = Json::object();
  return dict;
}

bool makes_int4_v1(const Scheme& scheme, Layout layout, Policy activation) {
  return scheme.family() == "int4_tinygemm" && activation == kWeightOnly &&
         (layout.name().starts_with("cpu_") || layout == "tile_packed_4d_v1");
}

Json state_int4_v1(const SchemeTensor& tensor) {
  const bool tiles = tensor.layout == "tile_packed_4d_v1";
  const std::vector<PlaneSpec> specs =
      tensor.scheme->plane_specs({tensor.dtype, tensor.n, tensor.k}, tensor.layout);
  Json impl = Json::object();
  impl["packed_weight"] = plane_as("qdata", specs[0].dtype, specs[0].shape);
  impl["scale_and_zero"] = plane_as("scale_and_zero", specs[1].dtype, specs[1].shape);
  impl["transposed"] = false;
  impl["_layout"] = tiles ? typed_json("TensorCoreTiledLayout", {{"inner_k_tiles", 8}})
                          : typed_json("Int4CPULayout", Json::object());
  return affine_state(tensor,
                      wrapper_here(tiles ? "torchao.dtypes.uintx.tensor_core_tiled_layout"
                                         : "torchao.dtypes.uintx.int4_cpu_layout",
                                   tiles ? "TensorCoreTiledAQTTensorImpl" : "Int4CPUAQTTensorImpl",
                                   specs[0].dtype, specs[0].shape, std::move(impl)),
                      0, 15, "FLOAT");
}

}  // namespace

bool is_int8_v1(const Scheme& scheme) {
  return scheme.family() == "int8_row_v1" || scheme.family() == "int8_group_v1";
}

extern const Encoder kEncoder_affine_int8 = {
    {kAffineModule, kAffine, false, kV1, kWriters}, makes_int8_v1, state_int8_v1};
extern const Encoder kEncoder_affine_int8_dynamic = {
    {"torchao.quantization.linear_activation_quantized_tensor", "LinearActivationQuantizedTensor", false, kV1,
     kWriters},
    makes_int8_dynamic_v1,
    state_int8_dynamic_v1};
extern const Encoder kEncoder_affine_int4 = {
    {kAffineModule, kAffine, false, kV1, kWriters}, makes_int4_v1, state_int4_v1};

}  // namespace qcts
