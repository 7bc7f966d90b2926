// SPDX-License-Identifier: BSD-3-Clause
// Decodes IntxUnpackedToInt8Tensor (torchao 0.14 to 0.18). The file does not record how zero points were
// chosen.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"

namespace qcts {
namespace {

Recognized recognize_intx(const NamedTensor& tensor) {
  if (tensor.type != "IntxUnpackedToInt8Tensor") return {};
  const std::string target = data_name(tensor.attributes.value("target_dtype", Json()));
  const std::vector<int64_t> blocks = block_size_of(tensor);
  if (!target.starts_with("int") || blocks.size() != 2 || blocks[0] != 1) return {};
  const std::string group = blocks[1] == tensor.shape[1] ? "_axis" : "_g" + std::to_string(blocks[1]);
  const bool wide = find_payload(tensor, "scale")->dtype == DType::float32 && tensor.dtype != DType::float32;
  const std::string mapping = all_zero(*find_payload(tensor, "zero_point")) ? "_sym" : "_asym";
  // A pickle holds the enum, safetensors metadata its string value.
  const Json policy = tensor.attributes.value("activation_quantization", Json());
  const std::string word = policy.is_string() ? policy.get<std::string>() : data_name(policy);
  if (!policy.is_null() && word != "int8_asym_per_token" && word != "INT8_ASYM_PER_TOKEN") return {};
  return {"intx_b" + target.substr(3) + group + (wide ? "_s32" : "") + mapping, "plain",
          policy.is_null() ? std::string(kWeightOnly.name()) : "dyn_token_asym"};
}

}  // namespace

extern const Decoder kDecoder_intx = {recognize_intx};

}  // namespace qcts
