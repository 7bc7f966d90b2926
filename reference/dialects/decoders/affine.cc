// SPDX-License-Identifier: BSD-3-Clause
// Decodes torchao 0.5 to 0.17: AffineQuantizedTensor around int8 codes (PlainLayout, QDQLayout), two codes
// per byte (CutlassInt4PackedLayout) and float8 codes (Float8Layout, CutlassSemiSparseLayout). It occurs
// alone; inside LinearActivationQuantizedTensor with one of kInputFunctions, _input_activation_quant_func_fp8
// or _float8_cutlass_quant; or inside WeightTensorWithLinearActivationQuantizationMetadata, which stores a
// scale of x. What these functions of quant_api.py compute:
//   _int8_asymm_per_token_quant          with float32 scales, as since 0.11; 0.5 and 0.6 used x's dtype,
//                                        which is the same for float32; 0.7 to 0.10 used float64, which the
//                                        file does not record
//   ..._reduced_range_quant_noop_decode  leaves a three-dimensional x with one token unchanged; the policy is
//                                        for a two-dimensional x, which is quantized
//   float8                               divides a row or all of x by its scale since 0.12; before, it
//                                        multiplied by the reciprocal of a scale of at least 2^-23; those
//                                        files have a quant_min
// Scales have the weight's dtype or float32, [N] or [N, K/g]. int8 zero points are int64 and zero, or absent;
// those of fewer bits are integers of any type. The scheme gives the same dequantized weight: a code of eight
// bits times a scale of at most eight (eleven) bits is exact in float32.
#include "reference/dialects/classes/affine.h"

#include <cmath>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

std::string impl_name_affine(const NamedTensor& tensor) {
  const std::string prefix = affine_prefix(tensor).value_or("");
  return prefix + (tensor.attributes.contains(prefix + "layout_tensor") ? "layout_tensor" : "tensor_impl");
}

// Was the tensor written by torchao 0.5 or 0.6?
bool is_old_encoding(const NamedTensor& tensor) {
  return impl_name_affine(tensor).ends_with("layout_tensor");
}

std::string class_of_impl(const NamedTensor& tensor) {
  const Json impl = tensor.attributes.value(impl_name_affine(tensor), Json());
  return impl.is_object() ? impl.value("_type", "") : "";
}

// The activation policy of a function for weights of eight bits and of fewer; empty: unsupported.
struct InputFunction {
  std::string_view name, of_int8, of_intx;
};
constexpr InputFunction kInputFunctions[] = {
    {"_int8_symm_per_token_reduced_range_quant", "dyn_row_sym_127", ""},
    {"_int8_symm_per_token_reduced_range_quant_noop_decode", "dyn_row_sym_127", ""},
    {"_int8_asymm_per_token_quant", "dyn_row_asym", "dyn_token_asym_s32"},
    {"_int8_symm_per_token_quant", "", "dyn_token_sym_127_s32"},
    {"_uint8_asymm_per_token_quant", "", "dyn_token_asym_u8_s32"},
    {"_int8_symm_cutlass_quant", "dyn_row_sym", "dyn_token_sym_s32"},
    {"_int4_symm_cutlass_quant", "", "dyn_token_sym_b4_s32"},
    {"_int8_symm_per_token_reduced_range_quant_cutlass", "", "dyn_token_sym_127"},
    {"_int4_symm_per_token_quant_cutlass", "", "dyn_token_sym_b4"}};

constexpr std::string_view kStaticClass = "WeightTensorWithLinearActivationQuantizationMetadata";

// Returns the function's name in quant_api.py; empty when there is none.
std::string function_name(const NamedTensor& tensor, const std::string& attribute) {
  constexpr std::string_view kModule = "torchao.quantization.quant_api.";
  const std::string function = data_name(tensor.attributes.value(attribute, Json()));
  return function.starts_with(kModule) ? function.substr(kModule.size()) : "";
}

// Returns the activation policy for integer weights: one of InputFunction's.
std::string integer_policy(const NamedTensor& tensor, std::string_view InputFunction::*policy) {
  if (tensor.type == "AffineQuantizedTensor") return std::string(kWeightOnly.name());
  const Json kwargs = tensor.attributes.value("quant_kwargs", Json());
  if (!kwargs.is_null() && !kwargs.empty()) return "";
  const std::string name = function_name(tensor, "input_quant_func");
  if (name == "_int8_asymm_per_token_quant" && is_old_encoding(tensor) && tensor.dtype != DType::float32)
    return policy == &InputFunction::of_intx ? "dyn_token_asym_eps" : "";
  for (const InputFunction& function : kInputFunctions)
    if (function.name == name) return std::string(function.*policy);
  return "";
}

// Returns "dyn_row", "dyn_tensor" or "static_tensor" for a function with its arguments. Codes of x have the
// weight's type.
std::string float8_function(const NamedTensor& tensor, DType code) {
  const bool is_static = tensor.type == kStaticClass;
  const std::string name = function_name(tensor, is_static ? "input_quant_func_static" : "input_quant_func");
  const Json kwargs = tensor.attributes.value("quant_kwargs", Json());
  if (!kwargs.is_object() || (is_static && find_payload(tensor, "zero_point"))) return "";
  if (name == "_float8_cutlass_quant" && !is_static && kwargs.size() == 1)
    return dtype_of_json(kwargs.value("target_dtype", Json())) == code ? "dyn_row" : "";
  if (name != "_input_activation_quant_func_fp8" || kwargs.size() != 2) return "";
  if (dtype_of_json(kwargs.value("activation_dtype", Json())) != code) return "";
  const Json granularity = kwargs.value("activation_granularity", Json());
  const std::string kind = granularity.is_object() ? granularity.value("_type", "") : "";
  if (kind == "PerTensor") return is_static ? "static_tensor" : "dyn_tensor";
  return kind == "PerRow" && !is_static ? "dyn_row" : "";
}

std::string float8_policy(const NamedTensor& tensor, DType code) {
  if (tensor.type == "AffineQuantizedTensor") return std::string(kWeightOnly.name());
  const std::string policy = float8_function(tensor, code);
  const bool by_reciprocal = !is_null(tensor, affine_prefix(tensor).value_or("") + "quant_min");
  return policy.empty() || !by_reciprocal ? policy : policy + "_recip";
}

std::string part_affine(const NamedTensor& tensor, std::string_view plane) {
  if (plane == "act_quant_scale") return "scale";
  const std::string at = impl_name_affine(tensor) + ".";
  if (plane == "sparse_metadata") return at + "meta";
  if (plane != "qdata") return at + std::string(plane);
  for (const char* name : {"float8_data", "sparse"})
    if (find_payload(tensor, at + name)) return at + name;
  return at + "int_data";
}

Recognized float8_affine(const NamedTensor& tensor, DType code, const std::vector<int64_t>& blocks) {
  const std::string policy = float8_policy(tensor, code);
  const std::string type = code == DType::float8_e5m2 ? "fp8_e5m2" : "fp8_e4m3";
  if (blocks == tensor.shape) return {type + "_tensor", "plain", policy};
  if (blocks != std::vector<int64_t>{1, tensor.shape[1]}) return {};
  if (class_of_impl(tensor) == "CutlassSemiSparseTensorImpl")
    return {code == DType::float8_e4m3fn ? "fp8_sparse24_row" : "", "cutlass_sm90", policy};
  return {code == DType::float8_e5m2 ? "fp8_e5m2_row" : "fp8_row", "plain", policy};
}

Recognized int8_affine(const NamedTensor& tensor, const std::string& impl, int64_t block) {
  const bool whole_row = block == tensor.shape[1];
  const std::string policy = integer_policy(tensor, &InputFunction::of_int8);
  if (policy == kWeightOnly) return {whole_row ? "int8_row" : "int8_g" + std::to_string(block), "plain"};
  const bool plain = impl == "PlainAQTTensorImpl" || impl == "PlainAQTLayout";
  return {whole_row && plain ? "int8_row" : "", "plain", policy};
}

constexpr std::string_view kPairs = "Int4PackedTensorImpl";  // the even column low

// Recognizes codes of b bits: quant_min is -2^(b-1), quant_max 2^(b-1) - 1.
Recognized intx_affine(const NamedTensor& tensor, const std::string& prefix, const std::string& impl,
                       int64_t block) {
  if (impl != "PlainAQTTensorImpl" && impl != "PlainAQTLayout" && impl != "QDQTensorImpl" && impl != kPairs)
    return {};
  const Json low = tensor.attributes.value(prefix + "quant_min", Json()),
             high = tensor.attributes.value(prefix + "quant_max", Json());
  int bits = 1;
  while (bits <= 8 && (low != -(1 << (bits - 1)) || high != (1 << (bits - 1)) - 1)) ++bits;
  const Tensor* scale = find_payload(tensor, part_affine(tensor, "scale"));
  const Tensor* zero_point = find_payload(tensor, part_affine(tensor, "zero_point"));
  if (bits > 8 || !scale) return {};
  const std::string group = block == tensor.shape[1] ? "_axis" : "_g" + std::to_string(block);
  const bool wide = scale->dtype == DType::float32 && tensor.dtype != DType::float32;
  const bool symmetric = !zero_point || all_zero(*zero_point);
  return {"intx_b" + std::to_string(bits) + group + (wide ? "_s32" : "") + (symmetric ? "_sym" : "_asym"),
          "plain", integer_policy(tensor, &InputFunction::of_intx)};
}

Recognized recognize_affine(const NamedTensor& tensor) {
  const std::optional<std::string> prefix = affine_prefix(tensor);
  if (!prefix) return {};
  const Tensor* codes = find_payload(tensor, part_affine(tensor, "qdata"));
  const std::vector<int64_t> blocks = list_of(tensor, *prefix + "block_size");
  if (!codes || blocks.size() != 2) return {};
  if (tensor.attributes.value(impl_name_affine(tensor) + ".transposed", Json()) == Json(true)) return {};
  if (codes->dtype == DType::float8_e4m3fn || codes->dtype == DType::float8_e5m2)
    return float8_affine(tensor, codes->dtype, blocks);
  const std::string domain = data_name(tensor.attributes.value(*prefix + "zero_point_domain", Json()));
  if (codes->dtype != DType::int8 || blocks[0] != 1 || domain == "FLOAT") return {};
  const bool full_range = is_null(tensor, *prefix + "quant_min") && is_null(tensor, *prefix + "quant_max");
  const std::string impl = class_of_impl(tensor);
  return full_range ? int8_affine(tensor, impl, blocks[1]) : intx_affine(tensor, *prefix, impl, blocks[1]);
}

// Converts integers of any type to int8; nullopt if one does not fit.
std::optional<Plane> narrowed_zero_points(const Tensor& part, const PlaneSpec& spec) {
  const std::vector<double> values = numbers_of(part);
  Plane plane = zeros(spec);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] >= -128 && values[i] <= 127) || values[i] != std::nearbyint(values[i]))
      return std::nullopt;
    plane.bytes[i] = static_cast<std::byte>(static_cast<int8_t>(values[i]));
  }
  return plane;
}

// Converts signed four-bit codes to int8.
std::optional<Plane> codes_of_pairs(const Tensor& part, const PlaneSpec& spec) {
  if (part.dtype != DType::int8 || part.shape != std::vector<int64_t>{spec.shape[0], spec.shape[1] / 2})
    return std::nullopt;
  const std::vector<std::byte> pairs = row_major_bytes(part);
  Plane plane = zeros(spec);
  for (size_t i = 0; i < 2 * pairs.size(); ++i) {
    const int nibble = std::to_integer<int>(pairs[i / 2]) >> (i % 2 * 4) & 15;
    plane.bytes[i] = static_cast<std::byte>(static_cast<int8_t>(nibble < 8 ? nibble : nibble - 16));
  }
  return plane;
}

std::optional<Plane> convert_affine(const NamedTensor& tensor, const Tensor* part, const PlaneSpec& spec) {
  if (!part) return spec.name == "zero_point" ? std::optional(zeros(spec)) : std::nullopt;
  if (spec.name == "qdata" && class_of_impl(tensor) == kPairs) return codes_of_pairs(*part, spec);
  if (part->numel() != numel_of(spec.shape)) return std::nullopt;
  const bool is_scale = spec.name == "scale" || spec.name == "act_quant_scale";
  if (is_scale && part->dtype == spec.dtype)
    return Plane{spec.name, spec.dtype, spec.shape, row_major_bytes(*part)};
  if (is_scale && is_float(part->dtype) && spec.dtype == DType::float32) {
    Plane plane = widened(*part, spec);
    plane.shape = spec.shape;
    return plane;
  }
  if (spec.name != "zero_point") return std::nullopt;
  const bool of_int8 = is_null(tensor, affine_prefix(tensor).value_or("") + "quant_min");
  // dense_by_dialect handles other int8 zero points.
  if (of_int8) return all_zero(*part) ? std::optional(zeros(spec)) : std::nullopt;
  return narrowed_zero_points(*part, spec);
}

}  // namespace

extern const Decoder kDecoder_affine = {recognize_affine, part_affine, convert_affine};

}  // namespace qcts
