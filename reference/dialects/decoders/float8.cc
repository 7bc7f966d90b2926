// SPDX-License-Identifier: BSD-3-Clause
// Decodes Float8Tensor and PrototypeFloat8Tensor. torchao 0.18.0:
// quantization/quantize_/workflows/float8/float8_tensor.py,
// prototype/quantization/float8_static_quant/prototype_float8_tensor.py.
#include <algorithm>

#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/float_schemas.h"
#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/decoders/decoder.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

bool is_float8(DType dtype) {
  return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2 || dtype == DType::float8_e4m3fnuz ||
         dtype == DType::float8_e5m2fnuz;
}

// Returns a field of an encoded dataclass; null when absent.
Json field(const Json& object, const char* name) {
  if (!object.is_object() || !object.contains("_data") || !object["_data"].is_object()) return nullptr;
  return object["_data"].value(name, Json(nullptr));
}

// Returns the class of an encoded object; "" for other values.
std::string type_name(const Json& object) {
  const bool typed = object.is_object() && object.contains("_type") && object["_type"].is_string();
  return typed ? object["_type"].get<std::string>() : "";
}

// Returns the scheme's name: "fp8_row" for e4m3 by rows, "fp8_e4m3_tensor" ...; it may not exist.
std::string scheme_of(const NamedTensor& tensor, DType code) {
  const int64_t n = tensor.shape[0], k = tensor.shape[1];
  std::vector<int64_t> blocks = block_size_of(tensor);
  if (blocks.size() != 2) blocks = {n, k};
  const std::string type = code == DType::float8_e5m2 ? "e5m2" : "e4m3";
  if (blocks == std::vector<int64_t>{1, k}) return type == "e4m3" ? "fp8_row" : "fp8_e5m2_row";
  if (blocks == tensor.shape) return "fp8_" + type + "_tensor";
  if (blocks == std::vector<int64_t>{128, 128}) return "fp8_" + type + "_block128";
  return blocks[0] == 1 ? "fp8_" + type + "_g" + std::to_string(blocks[1]) : "";
}

// Returns the policy of act_quant_kwargs; empty when no scheme has it.
std::string activation_of(const Json& kwargs, DType code, bool has_static_scale) {
  if (kwargs.is_null()) return has_static_scale ? "" : std::string(kWeightOnly.name());
  if (dtype_of_json(field(kwargs, "float8_dtype")) != code) return "";
  const Json granularity = field(kwargs, "granularity");
  const std::string kind = type_name(granularity);
  if (has_static_scale) return kind == "PerTensor" ? "static_tensor" : "";
  const bool mslk = data_name(field(kwargs, "kernel_preference")) == "MSLK";
  if (kind == "PerRow") return mslk ? "dyn_row_mslk" : "dyn_row";
  if (mslk) return "";
  if (kind == "PerTensor") return "dyn_tensor";
  const Json block = field(granularity, "block_size");
  const Json list = block.is_object() && block.contains("_data") ? block["_data"] : block;
  return kind == "PerBlock" && list == Json::array({1, 128}) ? "dyn_block128" : "";
}

// Returns the Float8Bounds of the activations.
Planes bounds_of(const NamedTensor& tensor) {
  if (is_null(tensor, "act_quant_kwargs")) return {};
  const Json& kwargs = tensor.attributes["act_quant_kwargs"];
  Planes bounds;
  for (const char* name : {"hp_value_lb", "hp_value_ub"}) {
    const Json value = field(kwargs, name);
    if (!value.is_number()) continue;
    Plane plane = {name, DType::float64, {}, std::vector<std::byte>(8)};
    store_float(DType::float64, plane.bytes, 0, value.get<double>());
    bounds.push_back(std::move(plane));
  }
  return bounds;
}

constexpr std::string_view kSparse = "Float8Sparse2x4_2DData2DMetadataTensor";

Recognized recognize_float8(const NamedTensor& tensor) {
  if (tensor.type == kSparse) {
    const Json kwargs = is_null(tensor, "act_quant_kwargs") ? Json() : tensor.attributes["act_quant_kwargs"];
    return {"fp8_sparse24_row", "cutlass_sm90", activation_of(kwargs, DType::float8_e4m3fn, false)};
  }
  if (tensor.type != "Float8Tensor" && tensor.type != "PrototypeFloat8Tensor") return {};
  const DType code = find_payload(tensor, "qdata")->dtype;
  if (code != DType::float8_e4m3fn && code != DType::float8_e5m2) return {};
  const bool has_static = find_payload(tensor, "act_quant_scale"),
             has_output = find_payload(tensor, "output_act_quant_scale");
  if (has_output && !has_static) return {};
  const Json kwargs = is_null(tensor, "act_quant_kwargs") ? Json() : tensor.attributes["act_quant_kwargs"];
  return {scheme_of(tensor, code), "plain",
          activation_of(kwargs, code, has_static) + (has_output ? "_out" : "")};
}

}  // namespace

// Requires a float32 scale: one number, or one per block of equal size. torchao uses only the scale's
// shape; its split and view leave the block_size of the tensor that they were cut from.
Outer float8_outer(const NamedTensor& t) {
  const Tensor& qdata = require_payload(t, "qdata", {});
  if (!is_float8(qdata.dtype))
    contradict(t, "qdata is " + std::string(dtype_name(qdata.dtype)) + ", not a float8 type");
  const Tensor& scale = require_payload(t, "scale", {DType::float32});
  const std::vector<int64_t> blocks = blocks_by_scale(qdata.shape, scale);
  if (blocks.size() != qdata.shape.size())
    contradict(t,
               "scale is " + shape_text(scale.shape) + ", which does not divide " + shape_text(qdata.shape));
  require_class_or_null(t, "act_quant_kwargs", "QuantizeTensorToFloat8Kwargs");
  require_class_or_null(t, "mm_config", "Float8MMConfig");
  require_class_or_null(t, "kernel_preference", "KernelPreference");
  Outer outer = {qdata.shape, require_dtype(t, "dtype", kFloats)};
  const Json& named = t.attributes["block_size"];
  if (!named.is_null() && !named.empty() && integers_of(named) != blocks)
    outer.note = "block_size " + shape_text(integers_of(named)) +
                 " contradicts the scale, which has blocks of " + shape_text(blocks) +
                 "; torchao uses the scale";
  return outer;
}

Outer prototype_float8_outer(const NamedTensor& t) {
  for (const char* name : {"act_quant_scale", "output_act_quant_scale"}) {
    if (!find_payload(t, name)) continue;
    if (require_payload(t, name, {DType::float32}).numel() != 1)
      contradict(t, std::string(name) + " is not a single number");
  }
  require_class_or_null(t, "output_act_quant_kwargs", "QuantizeTensorToFloat8Kwargs");
  return float8_outer(t);
}

// float8_sparse_2x4_2d_data_2d_metadata_tensor.py: two of four codes are kept; metadata rows are padded to
// 64, and its columns to 16 per 128 of k. The metadata's positions are checked when they are read.
Outer sparse_float8_outer(const NamedTensor& t) {
  const Tensor& qdata = require_payload(t, "qdata", {DType::float8_e4m3fn});
  if (qdata.shape.size() != 2 || qdata.shape[0] > INT32_MAX || qdata.shape[1] > INT32_MAX)
    contradict(t, "qdata " + shape_text(qdata.shape) + " is not a matrix");
  const int64_t n = qdata.shape[0], k = qdata.shape[1] * 2;
  require_shape(t, "sparse_metadata", require_payload(t, "sparse_metadata", {DType::uint8}),
                {(n + 63) / 64 * 64, (k + 127) / 128 * 16});
  require_shape(t, "scale", require_payload(t, "scale", {DType::float32}), {n, 1});
  require_class_or_null(t, "act_quant_kwargs", "QuantizeTensorToFloat8Kwargs");
  return {{n, k}, require_dtype(t, "dtype", kFloats)};
}

extern const Decoder kDecoder_float8 = {recognize_float8, nullptr, nullptr, bounds_of};

}  // namespace qcts
