// Which tensors are a scheme's, and their planes.
#include <cstring>

#include "reference/dialects/attributes.h"
#include "reference/dialects/schema.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

bool is_null(const NamedTensor& tensor, const char* attribute) {
  const auto value = tensor.attributes.find(attribute);
  return value == tensor.attributes.end() || value->is_null();
}

bool any_payload(const NamedTensor& tensor, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (find_payload(tensor, name)) return true;
  return false;
}

// The list behind block_size, a list or a tuple in its encoding; checked by the schema.
std::vector<int64_t> block_size(const NamedTensor& tensor) {
  const auto value = tensor.attributes.find("block_size");
  if (value == tensor.attributes.end()) return {};
  const Json& list = value->is_object() && value->contains("_data") ? (*value)["_data"] : *value;
  std::vector<int64_t> blocks;
  if (list.is_array())
    for (const Json& item : list) blocks.push_back(item.is_number_integer() ? item.get<int64_t>() : 0);
  return blocks;
}

bool one_scale_a_row(const NamedTensor& tensor) {
  return block_size(tensor) == std::vector<int64_t>{1, tensor.shape[1]};
}

struct Recognized {
  std::string scheme, layout;
};

std::string int4_name(const NamedTensor& tensor) {
  const std::vector<int64_t> blocks = block_size(tensor);
  return blocks.size() == 2 && blocks[0] == 1 ? "int4_tinygemm_g" + std::to_string(blocks[1]) : "";
}

// AffineQuantizedTensor holds unsigned codes 0 .. 15 with the zero point as a float (ZeroPointDomain.FLOAT)
// for tinygemm.
bool is_tinygemm_affine(const NamedTensor& tensor) {
  const auto value = [&](const char* name) { return tensor.attributes.value(name, Json(nullptr)); };
  const Json domain = value("zero_point_domain");
  return domain.is_object() && domain.value("_data", "") == "FLOAT" && value("quant_min") == Json(0) &&
         value("quant_max") == Json(15) && value("tensor_impl.transposed") != Json(true);
}

Recognized recognize(const NamedTensor& tensor) {
  if (tensor.shape.size() != 2) return {};
  if (tensor.type == "Int8Tensor") {
    const bool weight_only =
        is_null(tensor, "act_quant_kwargs") &&
        tensor.attributes.value("reduce_range", Json(false)) != Json(true) &&
        !any_payload(tensor, {"act_quant_scale", "act_quant_zero_point", "act_pre_scale"});
    return weight_only && one_scale_a_row(tensor) ? Recognized{"int8_row", "plain"} : Recognized{};
  }
  if (tensor.type == "Float8Tensor") {
    const bool e4m3 = find_payload(tensor, "qdata")->dtype == DType::float8_e4m3fn;
    return e4m3 && is_null(tensor, "act_quant_kwargs") && one_scale_a_row(tensor)
               ? Recognized{"fp8_row", "plain"}
               : Recognized{};
  }
  if (tensor.type == "Int4OpaqueTensor") {
    const bool weight_only = is_null(tensor, "act_mapping_type") &&
                             !any_payload(tensor, {"act_pre_scale", "qzeros", "compensation"});
    return weight_only ? Recognized{int4_name(tensor), ""} : Recognized{};
  }
  if (tensor.type == "Int4TilePackedTo4dTensor")
    return any_payload(tensor, {"act_pre_scale"}) ? Recognized{}
                                                  : Recognized{int4_name(tensor), "tile_packed_4d"};
  if (tensor.type == "W8A32LinearLayer") return {"tinyq_w8a32", "plain"};
  if (tensor.type == "W8A16LinearLayer") return {"tinyq_w8a16", "plain"};
  if (tensor.type == "AffineQuantizedTensor" && is_tinygemm_affine(tensor)) {
    const Json none(nullptr), found = tensor.attributes.value("tensor_impl", none);
    const std::string impl = found.is_object() ? found.value("_type", "") : "";
    if (impl == "Int4CPUAQTTensorImpl") return {int4_name(tensor), ""};
    if (impl == "TensorCoreTiledAQTTensorImpl") return {int4_name(tensor), "tile_packed_4d"};
  }
  return {};
}

Plane copy_plane(const Tensor& tensor, const PlaneSpec& spec) {
  return {spec.name, tensor.dtype, tensor.shape, row_major_bytes(tensor)};
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31, fraction = half & 0x3ffu;
  float value;
  if (exponent == 0) {
    value = static_cast<float>(fraction) * 0x1p-24f;
  } else {
    const uint32_t bits =
        exponent == 31 ? 0x7f800000u | (fraction << 13) : ((exponent + 112) << 23) | (fraction << 13);
    std::memcpy(&value, &bits, 4);
  }
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits |= sign;
  std::memcpy(&value, &bits, 4);
  return value;
}

// float16 and bfloat16 scales as float32, exactly. torchao 0.15 stored them in the logical dtype.
Plane widened_scale(const Tensor& tensor, const PlaneSpec& spec) {
  const std::vector<std::byte> narrow = row_major_bytes(tensor);
  Plane plane = {spec.name, DType::float32, tensor.shape, std::vector<std::byte>(narrow.size() * 2)};
  for (size_t i = 0; i < narrow.size() / 2; ++i) {
    uint16_t half;
    std::memcpy(&half, narrow.data() + 2 * i, 2);
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    if (tensor.dtype == DType::float16) value = half_to_float(half);
    std::memcpy(plane.bytes.data() + 4 * i, &value, 4);
  }
  return plane;
}

}  // namespace

void recognize_scheme(NamedTensor& tensor) {
  const Recognized found = recognize(tensor);
  const Scheme* scheme = found.scheme.empty() ? nullptr : find_scheme(found.scheme);
  if (!scheme) return;
  const WeightShape shape = {tensor.dtype, tensor.shape[0], tensor.shape[1]};
  // A CPU pack takes one set of shapes whatever its instruction set; any of them answers for all.
  const std::string_view layout =
      found.layout.empty() ? std::string_view("cpu_default") : std::string_view(found.layout);
  if (scheme->refusal(shape, layout)) return;
  const std::vector<PlaneSpec> specs = scheme->plane_specs(shape, layout);
  const std::string prefix = tensor.type == "AffineQuantizedTensor" ? "tensor_impl." : "";
  for (const PlaneSpec& spec : specs) {
    const Tensor* part = find_payload(
        tensor, prefix + (spec.name == "qdata" && !prefix.empty() ? "packed_weight" : spec.name));
    const bool optional = spec.name == "zero_point";
    if (!part && optional) continue;
    if (!part || part->shape != spec.shape) return;
  }
  tensor.scheme = found.scheme;
  tensor.layout = found.layout;
}

std::optional<SchemeTensor> scheme_tensor(const NamedTensor& tensor, std::string_view layout_hint) {
  const Scheme* scheme = tensor.scheme.empty() ? nullptr : find_scheme(tensor.scheme);
  if (!scheme) return std::nullopt;
  SchemeTensor result;
  result.scheme = scheme;
  result.layout = tensor.layout.empty() ? std::string(layout_hint) : tensor.layout;
  result.dtype = tensor.dtype;
  result.n = tensor.shape[0];
  result.k = tensor.shape[1];
  const WeightShape shape = {tensor.dtype, result.n, result.k};
  if (!scheme->find_layout(result.layout))
    refuse(RefusalClass::SubclassSchema, tensor.name + " (" + tensor.type +
                                             "): the file does not say which CPU packed it, and \"" +
                                             result.layout + "\" is no layout of " + tensor.scheme);
  const std::string prefix = tensor.type == "AffineQuantizedTensor" ? "tensor_impl." : "";
  for (const PlaneSpec& spec : scheme->plane_specs(shape, result.layout)) {
    const Tensor* part = find_payload(
        tensor, prefix + (spec.name == "qdata" && !prefix.empty() ? "packed_weight" : spec.name));
    if (!part)
      result.planes.push_back({spec.name, spec.dtype, spec.shape, std::vector<std::byte>(spec.bytes())});
    else if (part->dtype != spec.dtype && spec.name == "scale")
      result.planes.push_back(widened_scale(*part, spec));
    else
      result.planes.push_back(copy_plane(*part, spec));
  }
  return result;
}

}  // namespace qcts
