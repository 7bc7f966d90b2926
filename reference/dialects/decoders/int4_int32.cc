// SPDX-License-Identifier: BSD-3-Clause
// Decodes Int4PlainInt32Tensor of Intel GPUs (torchao 0.14 to 0.18). NPUs store zero points in the weight's
// dtype and codes from -8 to 7.
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"

namespace qcts {
namespace {

Recognized recognize_int4_int32(const NamedTensor& tensor) {
  const std::vector<int64_t> blocks = block_size_of(tensor);
  if (tensor.type != "Int4PlainInt32Tensor" || blocks.size() != 2 || blocks[0] != 1) return {};
  if (any_payload(tensor, {"act_pre_scale"}) || find_payload(tensor, "zero_point")->dtype != DType::int8)
    return {};
  return {"int4_int32_g" + std::to_string(blocks[1]), "plain"};
}

}  // namespace

extern const Decoder kDecoder_int4_int32 = {recognize_int4_int32};

}  // namespace qcts
