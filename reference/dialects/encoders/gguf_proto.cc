// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18.0 prototype/quantization/gguf/gguf_quantized_tensor.py
#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

bool makes_gguf_proto(const Scheme& scheme, Layout, Policy) { return scheme.family() == "gguf_proto"; }

Json state_gguf_proto(const SchemeTensor& tensor) {
  Json dict = Json::object();
  dict["n_blocks_per_superblock"] = 8;
  for (const Plane& plane : tensor.planes) dict[plane.name] = plane_here();
  return dict;
}

}  // namespace

extern const Encoder kEncoder_gguf_proto = {
    {"torchao.prototype.quantization.gguf.gguf_quantized_tensor", "GGUFQuantizedTensor", false},
    makes_gguf_proto,
    state_gguf_proto};

}  // namespace qcts
