// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/schema.h"

#include <algorithm>
#include <array>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/float_schemas.h"
#include "reference/dialects/classes/integer_schemas.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/classes/sparse.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

const std::vector<ClassSchema>& classes() {
  static const std::vector<ClassSchema> all = {
      {"Int8Tensor",
       {"qdata", "scale"},
       {"zero_point", "act_quant_scale", "act_quant_zero_point", "act_pre_scale"},
       {"block_size", "dtype"},
       {"act_quant_kwargs", "reduce_range"},
       int8_outer,
       true},
      {"Float8Tensor",
       {"qdata", "scale"},
       {},
       {},
       {"block_size", "mm_config", "act_quant_kwargs", "kernel_preference", "dtype"},
       float8_outer,
       true,
       {"hp_value_lb", "hp_value_ub"}},
      {"Int4Tensor",
       {"qdata", "scale", "zero_point"},
       {"act_pre_scale"},
       {"block_size", "shape"},
       {"activation_dtype"},
       int4_outer,
       true},
      {"Int4PlainInt32Tensor",
       {"qdata", "scale", "zero_point"},
       {"act_pre_scale"},
       {"block_size", "shape"},
       {},
       int4_int32_outer,
       true},
      {"Int4TilePackedTo4dTensor",
       {"qdata", "scale_and_zero"},
       {"act_pre_scale"},
       {"block_size", "shape"},
       {},
       int4_tile_outer,
       true},
      {"Int4OpaqueTensor",
       {"qdata", "scale_and_zero"},
       {"act_pre_scale", "qzeros", "compensation"},
       {"block_size", "shape"},
       {"act_mapping_type"},
       int4_opaque_outer,
       false},
      {"IntxUnpackedToInt8Tensor",
       {"qdata", "scale", "zero_point"},
       {},
       {"target_dtype", "block_size", "dtype", "activation_quantization"},
       {},
       intx_outer,
       true},
      {"Int4PreshuffledTensor",
       {"qdata", "group_scale"},
       {"group_zero", "row_scale"},
       {"block_size", "shape"},
       {},
       nullptr,
       false},
      {"GGUFQuantizedTensor",
       {"super_block_scale_scale", "super_block_min_scale", "quantized_block_scale", "quantized_block_min",
        "int_data"},
       {},
       {"n_blocks_per_superblock", "dtype", "shape"},
       {},
       gguf_outer,
       false},
      {"MXTensor",
       {"qdata", "scale"},
       {},
       {"elem_dtype", "block_size", "orig_dtype", "kernel_preference", "act_quant_kwargs",
        "is_swizzled_scales"},
       {},
       mx_outer,
       true},
      {"NVFP4Tensor",
       {"qdata", "scale"},
       {"per_tensor_scale", "act_per_tensor_scale"},
       {"block_size", "orig_dtype"},
       {"is_swizzled_scales", "use_triton_kernel", "act_quant_kwargs"},
       nvfp4_outer,
       true},
      // As torchao 0.7 to 0.12, 0.13 and 0.14, and 0.15 named them.
      {"MXTensor",
       {"_scale_e8m0", "_data"},
       {},
       {"_elem_dtype", "_block_size", "_orig_dtype"},
       {},
       mx_outer,
       false,
       {"_use_fp4_custom_triton_dequant_kernel", "_gemm_kernel_choice", "_pack_fp6"}},
      {"MXTensor",
       {"qdata", "_scale_e8m0"},
       {},
       {"_elem_dtype", "_block_size", "_orig_dtype"},
       {},
       mx_outer,
       false,
       {"_use_fp4_custom_triton_dequant_kernel", "_gemm_kernel_choice", "_pack_fp6", "act_quant_kwargs"}},
      {"MXTensor",
       {"qdata", "scale"},
       {},
       {"_elem_dtype", "block_size", "_orig_dtype"},
       {},
       mx_outer,
       false,
       {"kernel_preference", "act_quant_kwargs", "_is_swizzled_scales"}},
      {"NVFP4Tensor",
       {"_scale_e4m3", "_data"},
       {"_per_tensor_scale"},
       {"_block_size", "_orig_dtype"},
       {},
       nvfp4_outer,
       false,
       {"_is_swizzled_scales", "mm_config", "use_triton_kernel"}},
      {"NVFP4Tensor",
       {"qdata", "_scale_e4m3"},
       {"_per_tensor_scale", "_act_per_tensor_scale"},
       {"_block_size", "_orig_dtype"},
       {},
       nvfp4_outer,
       false,
       {"_is_swizzled_scales", "use_triton_kernel", "act_quant_kwargs"}},
      {"NVFP4Tensor",
       {"qdata", "scale"},
       {"per_tensor_scale", "act_per_tensor_scale"},
       {"block_size", "_orig_dtype"},
       {},
       nvfp4_outer,
       false,
       {"_is_swizzled_scales", "use_triton_kernel", "act_quant_kwargs"}},
      {"PrototypeFloat8Tensor",
       {"qdata", "scale"},
       {"act_quant_scale", "output_act_quant_scale"},
       {},
       {"block_size", "mm_config", "act_quant_kwargs", "kernel_preference", "dtype",
        "output_act_quant_kwargs"},
       prototype_float8_outer,
       false},
      {"Float8Sparse2x4_2DData2DMetadataTensor",
       {"qdata", "sparse_metadata", "scale"},
       {},
       {},
       {"block_size", "act_quant_kwargs", "dtype"},
       sparse_float8_outer,
       false},
      {"BlockSparseTensor",
       {"bsr_crow_indices", "bsr_col_indices", "bsr_values"},
       {},
       {"blocksize"},
       {},
       block_sparse_outer,
       false},
      // Weights for training also, or only, have the transpose's parts.
      {"SparseSemiStructuredTensorCUTLASS",
       {},
       {"packed", "meta", "packed_t", "meta_t", "compressed_swizzled_bitmask"},
       {"fuse_transpose_cusparselt", "alg_id_cusparselt"},
       {},
       semi_structured_outer,
       false},
      {"SparseSemiStructuredTensorCUSPARSELT",
       {},
       {"packed", "meta", "packed_t", "meta_t", "compressed_swizzled_bitmask"},
       {"fuse_transpose_cusparselt", "alg_id_cusparselt"},
       {},
       cusparselt_outer,
       false},
      {"NF4Tensor",
       {"quantized_data", "scaler_mean", "quantization_factor", "quantized_scalers", "nf4"},
       {},
       {"block_size", "n_blocks", "scaler_block_size"},
       {},
       nf4_outer,
       false},
  };
  return all;
}

// Lists the attributes that the classes of torchao 0.5 to 0.17 set; torchao_v1.cc checks their parts.
const std::vector<std::pair<std::string_view, std::vector<std::string_view>>>& first_generation() {
  static const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> all = {
      {"AffineQuantizedTensor",
       {"tensor_impl", "layout_tensor", "block_size", "quant_min", "quant_max", "zero_point_domain"}},
      {"LinearActivationQuantizedTensor",
       {"original_weight_tensor", "original_weight", "input_quant_func", "quant_kwargs"}},
      {"WeightTensorWithLinearActivationQuantizationMetadata",
       {"original_weight_tensor", "input_quant_func_static", "scale", "zero_point", "quant_kwargs"}},
      {"FbgemmFp8Tensor", {"float8_data", "scale", "activation_scale_ub"}},
      {"FbgemmInt4Tensor", {"packed_weight", "scale", "zero_point", "group_size"}},
  };
  return all;
}

bool holds(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void arrange_payload(const ClassSchema& schema, NamedTensor& tensor, bool lenient,
                     std::vector<std::string>& warnings) {
  std::vector<InnerTensor> arranged;
  const auto take = [&](std::string_view name) {
    const auto found = std::ranges::find(tensor.payload, name, &InnerTensor::name);
    if (found == tensor.payload.end()) return false;
    arranged.push_back(std::move(*found));
    tensor.payload.erase(found);
    return true;
  };
  for (std::string_view name : schema.tensors)
    if (!take(name)) contradict(tensor, "no tensor " + std::string(name));
  for (std::string_view name : schema.optional_tensors) take(name);
  for (InnerTensor& rest : tensor.payload) {
    if (!lenient) contradict(tensor, "an unknown tensor " + rest.name);
    warnings.push_back(tensor.name + ": kept an unknown tensor " + rest.name);
    arranged.push_back(std::move(rest));
  }
  tensor.payload = std::move(arranged);
}

void arrange_attributes(const ClassSchema& schema, NamedTensor& tensor, bool lenient,
                        std::vector<std::string>& warnings) {
  Json arranged = Json::object();
  for (std::string_view name : schema.optional_attributes)
    arranged[std::string(name)] =
        tensor.attributes.contains(name) ? tensor.attributes[std::string(name)] : Json(nullptr);
  for (std::string_view name : schema.attributes) {
    if (!tensor.attributes.contains(name)) contradict(tensor, "no attribute " + std::string(name));
    arranged[std::string(name)] = tensor.attributes[std::string(name)];
  }
  for (const auto& [name, value] : tensor.attributes.items()) {
    if (holds(schema.former_attributes, name)) {
      arranged[name] = value;
      continue;
    }
    if (holds(schema.attributes, name) || holds(schema.optional_attributes, name)) continue;
    if (holds(schema.optional_tensors, name) && value.is_null()) continue;  // an absent optional tensor
    if (!lenient) contradict(tensor, "an unknown attribute " + name);
    warnings.push_back(tensor.name + ": kept an unknown attribute " + name);
    arranged[name] = value;
  }
  tensor.attributes = std::move(arranged);
}

}  // namespace

const ClassSchema* find_class(std::string_view name) {
  for (const auto* list : {&classes(), &training_classes()})
    for (const ClassSchema& candidate : *list)
      if (candidate.name == name) return &candidate;
  return nullptr;
}

const ClassSchema* find_class(const NamedTensor& tensor) {
  const auto has_names = [&](const ClassSchema& schema) {
    return std::ranges::all_of(schema.tensors, [&](auto name) { return find_payload(tensor, name); }) &&
           std::ranges::all_of(schema.attributes,
                               [&](auto name) { return tensor.attributes.contains(name); });
  };
  for (const auto* list : {&classes(), &training_classes()})
    for (const ClassSchema& candidate : *list)
      if (candidate.name == tensor.type && has_names(candidate)) return &candidate;
  return find_class(tensor.type);
}

bool is_of_class(std::string_view cls, std::string_view name) {
  bool is_known = false;
  for (const auto* list : {&classes(), &training_classes()})
    for (const ClassSchema& candidate : *list) {
      if (candidate.name != cls) continue;
      is_known = true;
      for (const auto* names : {&candidate.tensors, &candidate.optional_tensors, &candidate.attributes,
                                &candidate.optional_attributes, &candidate.former_attributes})
        if (holds(*names, name)) return true;
    }
  for (const auto& [former, names] : first_generation())
    if (former == cls) return holds(names, name);
  return !is_known;
}

const Tensor* find_payload(const NamedTensor& tensor, std::string_view name) {
  for (const InnerTensor& inner : tensor.payload)
    if (inner.name == name) return &inner.tensor;
  return nullptr;
}

void arrange(const ClassSchema& schema, NamedTensor& tensor, bool lenient,
             std::vector<std::string>& warnings) {
  arrange_payload(schema, tensor, lenient, warnings);
  arrange_attributes(schema, tensor, lenient, warnings);
}

}  // namespace qcts
