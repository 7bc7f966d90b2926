// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18.0 quantization/quantize_/workflows/nf4/nf4_tensor.py
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

bool makes_nf4(const Scheme& scheme, Layout layout, Policy activation) {
  return scheme.family() == "nf4" && layout == kPlain && activation == kWeightOnly;
}

Json state_nf4(const SchemeTensor& tensor) {
  Json dict = Json::object();
  dict["block_size"] = 64;
  dict["n_blocks"] = tensor.n * tensor.k / 64;
  dict["scaler_block_size"] = 256;
  for (const char* part :
       {"quantized_scalers", "quantization_factor", "scaler_mean", "quantized_data", "nf4"})
    dict[part] = plane_here();
  return dict;
}

}  // namespace

extern const Encoder kEncoder_nf4 = {
    {"torchao.quantization.quantize_.workflows.nf4.nf4_tensor", "NF4Tensor", false}, makes_nf4, state_nf4};

}  // namespace qcts
