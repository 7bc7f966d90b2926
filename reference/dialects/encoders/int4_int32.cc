// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18.0 quantization/quantize_/workflows/int4/int4_plain_int32_tensor.py
#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

bool makes_int4_int32(const Scheme& scheme, Layout layout, Policy) {
  return scheme.family() == "int4_int32" && layout == kPlain;
}

Json state_int4_int32(const SchemeTensor& tensor) {
  Json dict = Json::object();
  for (const char* key : {"qdata", "scale", "zero_point"}) dict[key] = plane_here();
  dict["block_size"] = group_block(tensor);
  dict["act_pre_scale"] = nullptr;
  return dict;
}

}  // namespace

extern const Encoder kEncoder_int4_int32 = {
    {"torchao.quantization", "Int4PlainInt32Tensor", true}, makes_int4_int32, state_int4_int32};

}  // namespace qcts
