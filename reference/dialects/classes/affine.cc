// SPDX-License-Identifier: BSD-3-Clause
// Sources: torchao 0.5 to 0.17, torchao/dtypes/affine_quantized_tensor.py and its layouts (in
// torchao/prototype/dtypes since 0.15 and 0.16), and _dequantize_affine* of
// torchao/quantization/quant_primitives.py.
#include "reference/dialects/classes/affine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/bit_shards.h"
#include "reference/dialects/classes/block_floats.h"
#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/marlin.h"
#include "reference/dialects/classes/nf4.h"
#include "reference/dialects/classes/qtensor.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/sparse.h"
#include "reference/dialects/classes/training.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr std::string_view kInner = "original_weight_tensor";

std::string class_at(const NamedTensor& tensor, const std::string& name) {
  const auto value = tensor.attributes.find(name);
  return value != tensor.attributes.end() && value->is_object() ? value->value("_type", "") : "";
}

// Unpacks two signed codes per byte, the even column low (dtypes/uintx/cutlass_int4_packed_layout.py).
std::optional<std::vector<double>> nibble_codes(const Tensor& pairs, int64_t rows, int64_t columns) {
  if (pairs.dtype != DType::int8 || pairs.shape != std::vector<int64_t>{rows, columns / 2} || columns % 2)
    return std::nullopt;
  std::vector<double> codes;
  for (const std::byte byte : row_major_bytes(pairs)) {
    const int value = static_cast<int8_t>(byte), low = (value & 15) >= 8 ? (value & 15) - 16 : value & 15;
    codes.push_back(low);
    codes.push_back(value >> 4);
  }
  return codes;
}

struct Parts {
  std::string_view impl, codes;
};
// Layouts that store one code per element, each under its own name.
constexpr std::array<Parts, 6> kElementwise = {{{"PlainAQTTensorImpl", "int_data"},
                                                {"PlainAQTLayout", "int_data"},
                                                {"QDQTensorImpl", "int_data"},
                                                {"_Impl", "int_data"},
                                                {"Float8AQTTensorImpl", "float8_data"},
                                                {"Float8AQTLayout", "float8_data"}}};

// Unpacks FloatxTensorCore*, called FpxTensorCore* in 0.5.
std::optional<std::vector<double>> prepacked_codes(const NamedTensor& tensor, const std::string& at,
                                                   int64_t rows, int64_t columns) {
  const Tensor* packed = find_payload(tensor, at + "packed_floatx_data");
  if (!packed) packed = find_payload(tensor, at + "packed_fpx_data");
  Json layout = attribute_at(tensor, at + "_layout");
  if (layout.is_null()) layout = attribute_at(tensor, at + "layout_type");
  const Json data = layout.is_object() ? layout.value("_data", Json()) : Json();
  if (!packed || !data.is_object()) return std::nullopt;
  const Json exponent = data.value("ebits", Json()), mantissa = data.value("mbits", Json());
  if (!exponent.is_number_integer() || !mantissa.is_number_integer()) return std::nullopt;
  const int64_t e = exponent.get<int64_t>(), m = mantissa.get<int64_t>();
  if (e < 1 || e > 7 || m < 0 || m > 7) return std::nullopt;
  return floatx_codes(*packed, rows, columns, static_cast<int>(e), static_cast<int>(m));
}

std::optional<std::vector<double>> codes_of(const NamedTensor& tensor, const std::string& at,
                                            const Affine& affine) {
  for (const Parts& parts : kElementwise) {
    if (affine.impl != parts.impl) continue;
    const Tensor* codes = find_payload(tensor, at + std::string(parts.codes));
    if (!codes || codes->shape != affine.shape || !holds_numbers(codes->dtype)) return std::nullopt;
    return numbers_of(*codes);
  }
  if (affine.shape.size() != 2) return std::nullopt;
  if (affine.impl == "UintxAQTTensorImpl" || affine.impl == "UintxAQTLayout")
    return bit_shard_codes(tensor, at + "int_data.", affine.shape);
  if (affine.impl.starts_with("FloatxTensorCore") || affine.impl.starts_with("FpxTensorCore"))
    return prepacked_codes(tensor, at, affine.shape[0], affine.shape[1]);
  if (affine.impl == "BlockSparseAQTTensorImpl" || affine.impl == "BlockSparseAQTLayout")
    if (const std::optional<Tensor> codes = dense_of_blocks(tensor, at); codes && holds_numbers(codes->dtype))
      return numbers_of(*codes);
  if (affine.impl == "Int4PackedTensorImpl")
    if (const Tensor* pairs = find_payload(tensor, at + "int_data"))
      return nibble_codes(*pairs, affine.shape[0], affine.shape[1]);
  return std::nullopt;
}

std::optional<ZeroPoints> domain_of(const Json& value) {
  if (value.is_null()) return ZeroPoints::none;
  const std::string name = data_name(value);
  if (name == "INT") return ZeroPoints::integer;
  if (name == "NONE") return ZeroPoints::none;
  if (name == "FLOAT") return ZeroPoints::floating;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> affine_prefix(const NamedTensor& tensor) {
  if (tensor.type == "AffineQuantizedTensor") return "";
  const std::string inner(kInner);
  if (class_at(tensor, inner) == "AffineQuantizedTensor") return inner + ".";
  return std::nullopt;
}

std::optional<Affine> read_affine(const NamedTensor& tensor) {
  const std::optional<std::string> prefix = affine_prefix(tensor);
  if (!prefix) return std::nullopt;
  const bool first_names = tensor.attributes.contains(*prefix + "layout_tensor");
  const std::string impl = *prefix + (first_names ? "layout_tensor" : "tensor_impl");
  const std::string at = impl + ".";
  Affine affine;
  affine.dtype = tensor.dtype;
  affine.shape = tensor.shape;
  affine.block = integers_of(attribute_at(tensor, *prefix + "block_size"));
  affine.impl = class_at(tensor, impl);
  affine.transposed = attribute_at(tensor, at + "transposed") == Json(true);
  if (affine.transposed) {  // Float8AQTTensorImpl.t() changes nothing but this flag
    if (affine.impl != "Float8AQTTensorImpl" || affine.shape.size() != 2) return std::nullopt;
    std::ranges::reverse(affine.shape);
    std::ranges::reverse(affine.block);
  }
  affine.scale = find_payload(tensor, at + "scale");
  affine.zero_point = find_payload(tensor, at + "zero_point");
  // Small floats have one scale per row, whatever their block_size says ([256, 1] for [256, 64]).
  if (affine.impl.find("xTensorCore") != std::string::npos && affine.shape.size() == 2)
    affine.block = {1, affine.shape[1]};
  const std::optional<ZeroPoints> domain = domain_of(attribute_at(tensor, *prefix + "zero_point_domain"));
  const int64_t blocks = block_count(affine);
  if (!domain || !blocks || !affine.scale || !is_float(affine.scale->dtype) ||
      affine.scale->numel() != blocks)
    return std::nullopt;
  affine.domain = *domain;
  if (affine.zero_point && (affine.zero_point->numel() != blocks || !holds_numbers(affine.zero_point->dtype)))
    return std::nullopt;
  if (affine.domain == ZeroPoints::none && affine.zero_point) return std::nullopt;
  if (affine.domain == ZeroPoints::integer && affine.zero_point && !all_integers(*affine.zero_point))
    return std::nullopt;
  if (affine.domain == ZeroPoints::floating) {
    const Json low = attribute_at(tensor, *prefix + "quant_min"),
               high = attribute_at(tensor, *prefix + "quant_max");
    if (!low.is_number() || !high.is_number()) return std::nullopt;
    affine.middle = (high.get<double>() + low.get<double>() + 1) / 2;
  }
  std::optional<std::vector<double>> codes = codes_of(tensor, at, affine);
  if (!codes) return std::nullopt;
  affine.codes = std::move(*codes);
  return affine;
}

std::optional<Tensor> dense_by_dialect(const NamedTensor& tensor) {
  if (const std::optional<Affine> affine = read_affine(tensor)) return dense_of_affine(*affine, tensor.name);
  if (const std::optional<Affine> affine = read_flat_affine(tensor))
    return dense_of_affine(*affine, tensor.name);
  if (const std::optional<Tensor> dense = dense_of_block_floats(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_nf4(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_marlin(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_sparse_weight(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_bit_shards(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_gguf(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_codebook(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_optimizer_state(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_training_weight(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_qtensor(tensor)) return dense;
  // Wrappers that quantize only activations, around a plain weight.
  if (tensor.type != "LinearActivationQuantizedTensor" &&
      tensor.type != "WeightTensorWithLinearActivationQuantizationMetadata")
    return std::nullopt;
  for (std::string_view name : {kInner, std::string_view("original_weight")})
    if (const Tensor* weight = find_payload(tensor, name); weight && weight->shape == tensor.shape)
      return *weight;
  return std::nullopt;
}

}  // namespace qcts
