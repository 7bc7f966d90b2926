// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18.0 quantization/quantize_/workflows/intx/intx_unpacked_to_int8_tensor.py
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

// activation_quantization cannot express the first generation's policies.
bool makes_intx(const Scheme& scheme, Layout layout, Policy activation) {
  return scheme.family() == "intx" && layout == kPlain &&
         (activation == kWeightOnly || activation == "dyn_token_asym");
}

Json state_intx(const SchemeTensor& tensor) {
  const std::string_view name = tensor.scheme->name();  // "intx_b4_g32_asym"
  Json dict = Json::object();
  for (const char* key : {"qdata", "scale", "zero_point"}) dict[key] = plane_here();
  dict["target_dtype"] = dtype_json("int" + std::string(name.substr(6, 1)));
  dict["block_size"] = typed_json("tuple", group_block(tensor));
  dict["activation_quantization"] =
      tensor.activation == kWeightOnly ? Json(nullptr) : Json("int8_asym_per_token");
  return dict;
}

}  // namespace

extern const Encoder kEncoder_intx = {
    {"torchao.quantization", "IntxUnpackedToInt8Tensor", true}, makes_intx, state_intx};

}  // namespace qcts
