// torchao 0.5 to 0.17: AffineQuantizedTensor around int8 codes (PlainLayout) and float8 codes (Float8Layout),
// weight only, and the first below LinearActivationQuantizedTensor with
// _int8_symm_per_token_reduced_range_quant. Scales are in the weight's dtype or in float32, [N] or [N, K/g];
// zero points are int64 and zero, or absent. The dequantized weight is the scheme's: a code of eight bits
// times a scale of at most eight (eleven) bits is exact in float32.
#include "reference/dialects/affine.h"
#include "reference/dialects/attributes.h"
#include "reference/dialects/schema.h"
#include "reference/dialects/view.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

std::string impl_name_affine(const NamedTensor& tensor) {
  const std::string prefix = affine_prefix(tensor).value_or("");
  return prefix + (tensor.attributes.contains(prefix + "layout_tensor") ? "layout_tensor" : "tensor_impl");
}

std::string class_of_impl(const NamedTensor& tensor) {
  const Json impl = tensor.attributes.value(impl_name_affine(tensor), Json());
  return impl.is_object() ? impl.value("_type", "") : "";
}

// "" for a function, or arguments of one, that is no policy.
std::string policy_of_function(const NamedTensor& tensor) {
  if (tensor.type == "AffineQuantizedTensor") return std::string(kWeightOnly);
  const std::string function = data_name(tensor.attributes.value("input_quant_func", Json()));
  const Json kwargs = tensor.attributes.value("quant_kwargs", Json());
  const bool asks_nothing = kwargs.is_null() || kwargs.empty();
  const bool known = function == "torchao.quantization.quant_api._int8_symm_per_token_reduced_range_quant";
  return known && asks_nothing ? "dyn_row_sym_127" : "";
}

std::string part_affine(const NamedTensor& tensor, std::string_view plane) {
  const std::string at = impl_name_affine(tensor) + ".";
  if (plane != "qdata") return at + std::string(plane);
  return at + (find_payload(tensor, at + "float8_data") ? "float8_data" : "int_data");
}

Recognized recognize_affine(const NamedTensor& tensor) {
  const std::optional<std::string> prefix = affine_prefix(tensor);
  const std::string policy = prefix ? policy_of_function(tensor) : "";
  if (policy.empty()) return {};
  const Tensor* codes = find_payload(tensor, part_affine(tensor, "qdata"));
  const std::vector<int64_t> blocks = list_of(tensor, *prefix + "block_size");
  if (!codes || blocks.size() != 2 || blocks[0] != 1) return {};
  const bool whole_row = blocks[1] == tensor.shape[1];
  if (codes->dtype == DType::float8_e4m3fn && whole_row && prefix->empty()) return {"fp8_row", "plain"};
  const bool full_range = is_null(tensor, *prefix + "quant_min") && is_null(tensor, *prefix + "quant_max");
  const std::string domain = data_name(tensor.attributes.value(*prefix + "zero_point_domain", Json()));
  if (codes->dtype != DType::int8 || !full_range || domain == "FLOAT") return {};
  if (prefix->empty()) return {whole_row ? "int8_row" : "int8_g" + std::to_string(blocks[1]), "plain"};
  const std::string impl = class_of_impl(tensor);
  const bool plain = impl == "PlainAQTTensorImpl" || impl == "PlainAQTLayout";
  return {whole_row && plain ? "int8_row" : "", "plain", policy};
}

std::optional<Plane> convert_affine(const NamedTensor&, const Tensor* part, const PlaneSpec& spec) {
  if (!part) return spec.name == "zero_point" ? std::optional(zeros(spec)) : std::nullopt;
  if (part->numel() != numel_of(spec.shape)) return std::nullopt;
  if (spec.name == "scale" && is_float(part->dtype) && spec.dtype == DType::float32) {
    Plane plane = widened(*part, spec);
    plane.shape = spec.shape;
    return plane;
  }
  if (spec.name != "zero_point") return std::nullopt;
  for (const std::byte byte : row_major_bytes(*part))  // any other zero point is dense_by_dialect's
    if (byte != std::byte{0}) return std::nullopt;
  return zeros(spec);
}

}  // namespace

extern const View kView_affine = {recognize_affine, part_affine, convert_affine};

}  // namespace qcts
