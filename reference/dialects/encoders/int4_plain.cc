// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18.0 quantization/quantize_/workflows/int4/int4_tensor.py
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

bool makes_int4_plain(const Scheme& scheme, Layout layout, Policy) {
  return scheme.family() == "int4_plain" && layout == kPlain;
}

Json state_int4_plain(const SchemeTensor& tensor) {
  Json dict = Json::object();
  for (const char* key : {"qdata", "scale", "zero_point"}) dict[key] = plane_here();
  dict["block_size"] = group_block(tensor);
  dict["activation_dtype"] = dtype_json(tensor.activation == kWeightOnly ? "bfloat16" : "float8_e4m3fn");
  dict["act_pre_scale"] = nullptr;
  return dict;
}

}  // namespace

extern const Encoder kEncoder_int4_plain = {
    {"torchao.quantization", "Int4Tensor", true}, makes_int4_plain, state_int4_plain};

}  // namespace qcts
