// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.11 to 0.15, dtypes/fbgemm_fp8_tensor.py, FbgemmFp8Tensor: float8_data [N, K] with scale [N], and
// activation_scale_ub [1], the bound that fbgemm's quantize_fp8_per_row sets on the largest magnitude of a
// row of x.
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"

namespace qcts {
namespace {

Recognized recognize_fbgemm(const NamedTensor& tensor) {
  if (tensor.type != "FbgemmFp8Tensor") return {};
  return {"fp8_row", "plain", "dyn_row_fbgemm"};
}

std::string part_fbgemm(const NamedTensor&, std::string_view plane) {
  return plane == "qdata" ? "float8_data" : std::string(plane);
}

std::optional<Plane> convert_fbgemm(const NamedTensor&, const Tensor* part, const PlaneSpec& spec) {
  if (!part || spec.name != "scale" || part->dtype != spec.dtype || part->numel() != numel_of(spec.shape))
    return std::nullopt;
  return Plane{spec.name, spec.dtype, spec.shape, row_major_bytes(*part)};
}

}  // namespace

extern const Decoder kDecoder_fbgemm = {recognize_fbgemm, part_fbgemm, convert_fbgemm};

}  // namespace qcts
