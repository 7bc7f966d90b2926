// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18.0 quantization/quantize_/workflows/int4/int4_tile_packed_to_4d_tensor.py and
// prototype/quantization/int4/int4_opaque_tensor.py
#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

Json state_int4_tinygemm(const SchemeTensor& tensor) {
  Json dict = Json::object();
  dict["qdata"] = plane_here();
  dict["scale_and_zero"] = plane_here();
  dict["block_size"] = group_block(tensor);
  dict["act_pre_scale"] = tensor.policy_planes.empty() ? Json(nullptr) : plane_here();
  return dict;
}

Json opaque_state(const SchemeTensor& tensor) {
  Json dict = state_int4_tinygemm(tensor);
  for (const char* key : {"qzeros", "compensation", "act_mapping_type"}) dict[key] = nullptr;
  return dict;
}

bool makes_tile(const Scheme& scheme, Layout layout, Policy) {
  return scheme.family() == "int4_tinygemm" && layout == "tile_packed_4d";
}
bool makes_opaque(const Scheme& scheme, Layout layout, Policy) {
  return scheme.family() == "int4_tinygemm" && layout.name().starts_with("cpu_");
}

}  // namespace

extern const Encoder kEncoder_int4_tile_packed = {
    {"torchao.quantization", "Int4TilePackedTo4dTensor", true}, makes_tile, state_int4_tinygemm};
extern const Encoder kEncoder_int4_opaque = {
    {"torchao.prototype.quantization.int4", "Int4OpaqueTensor", false}, makes_opaque, opaque_state};

}  // namespace qcts
