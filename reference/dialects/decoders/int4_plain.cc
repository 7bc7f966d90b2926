// SPDX-License-Identifier: BSD-3-Clause
// Decodes Int4Tensor (torchao 0.14 to 0.18; since 0.17 for float8 activations too), Int4PreshuffledTensor for
// bfloat16 activations, and FbgemmInt4Tensor (0.12), which holds Int4Tensor's bytes under other names. For
// float8 activations from_hp chooses zeros of 0 (symmetric); for others a file does not say whether 0 was
// chosen or computed.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"

namespace qcts {
namespace {

Recognized recognize_int4_plain(const NamedTensor& tensor) {
  if (tensor.type == "FbgemmInt4Tensor") {
    const Json group = tensor.attributes.value("group_size", Json());
    return {group.is_number_integer() ? "int4_plain_g" + group.dump() : "", "plain"};
  }
  const bool plain = tensor.type == "Int4Tensor";
  if (!plain && tensor.type != "Int4PreshuffledTensor") return {};
  const std::vector<int64_t> blocks = block_size_of(tensor);
  if (blocks.size() != 2 || blocks[0] != 1 || any_payload(tensor, {"act_pre_scale", "row_scale"})) return {};
  const std::string activation = data_name(tensor.attributes.value("activation_dtype", Json()));
  const std::string group = "g" + std::to_string(blocks[1]);
  if (plain && activation == "float8_e4m3fn") return {"int4_plain_sym_" + group, "plain", "dyn_row_mslk"};
  if (!activation.empty() && activation != "bfloat16") return {};
  return {"int4_plain_" + group, plain ? "plain" : "preshuffled_bf16"};
}

std::string part_int4_plain(const NamedTensor& tensor, std::string_view plane) {
  if (tensor.type == "FbgemmInt4Tensor") return plane == "qdata" ? "packed_weight" : std::string(plane);
  if (tensor.type == "Int4Tensor" || plane == "qdata") return std::string(plane);
  return plane == "scale" ? "group_scale" : "group_zero";
}

}  // namespace

extern const Decoder kDecoder_int4_plain = {recognize_int4_plain, part_int4_plain};

}  // namespace qcts
