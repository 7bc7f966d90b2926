// SPDX-License-Identifier: BSD-3-Clause
// Decodes tinygemm's int4: Int4OpaqueTensor and Int4TilePackedTo4dTensor (torchao 0.14 to 0.18), and
// AffineQuantizedTensor around Int4CPULayout and TensorCoreTiledLayout (0.5 to 0.15).
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"

namespace qcts {
namespace {

std::string scheme_name(const NamedTensor& tensor) {
  const std::vector<int64_t> blocks = block_size_of(tensor);
  return blocks.size() == 2 && blocks[0] == 1 ? "int4_tinygemm_g" + std::to_string(blocks[1]) : "";
}

// For tinygemm, AffineQuantizedTensor holds unsigned codes 0 .. 15 and a floating zero point
// (ZeroPointDomain.FLOAT).
bool is_tinygemm_affine(const NamedTensor& tensor) {
  const auto value = [&](const char* name) { return tensor.attributes.value(name, Json(nullptr)); };
  return data_name(value("zero_point_domain")) == "FLOAT" && value("quant_min") == Json(0) &&
         value("quant_max") == Json(15) && value("tensor_impl.transposed") != Json(true) &&
         value("layout_tensor.transposed") != Json(true);
}

// Returns the implementation's class; 0.5 and 0.6 called it layout_tensor.
std::string impl_name_int4_tinygemm(const NamedTensor& tensor) {
  return tensor.attributes.contains("layout_tensor") ? "layout_tensor" : "tensor_impl";
}

Recognized recognize_int4_tinygemm(const NamedTensor& tensor) {
  const std::string policy = any_payload(tensor, {"act_pre_scale"}) ? "pre_weight_only" : "weight_only";
  if (tensor.type == "Int4OpaqueTensor") {
    const bool tinygemm =
        is_null(tensor, "act_mapping_type") && !any_payload(tensor, {"qzeros", "compensation"});
    return tinygemm ? Recognized{scheme_name(tensor), "", policy} : Recognized{};
  }
  if (tensor.type == "Int4TilePackedTo4dTensor") return {scheme_name(tensor), "tile_packed_4d", policy};
  if (tensor.type == "AffineQuantizedTensor" && is_tinygemm_affine(tensor)) {
    const Json object = tensor.attributes.value(impl_name_int4_tinygemm(tensor), Json());
    const std::string impl = object.is_object() ? object.value("_type", "") : "";
    if (impl == "Int4CPUAQTTensorImpl") return {scheme_name(tensor), ""};
    if (impl == "TensorCoreTiledAQTTensorImpl" || impl == "TensorCoreTiledAQTLayout")
      return {scheme_name(tensor), "tile_packed_4d_v1"};
  }
  return {};
}

std::string part_int4_tinygemm(const NamedTensor& tensor, std::string_view plane) {
  if (tensor.type != "AffineQuantizedTensor") return std::string(plane);
  return impl_name_int4_tinygemm(tensor) + "." + std::string(plane == "qdata" ? "packed_weight" : plane);
}

}  // namespace

extern const Decoder kDecoder_int4_tinygemm = {recognize_int4_tinygemm, part_int4_tinygemm};

}  // namespace qcts
