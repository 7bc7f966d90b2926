// SPDX-License-Identifier: BSD-3-Clause
// Decodes Int4PreshuffledTensor for float8 activations (torchao 0.13 to 0.18), the only form with a
// row_scale. Its dtype is that of its float8 scales.
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"

namespace qcts {
namespace {

Recognized recognize_int4_e4m3(const NamedTensor& tensor) {
  if (tensor.type != "Int4PreshuffledTensor" || !find_payload(tensor, "row_scale")) return {};
  const std::vector<int64_t> blocks = block_size_of(tensor);
  if (blocks.size() != 2 || blocks[0] != 1 || any_payload(tensor, {"group_zero"})) return {};
  return {"int4_e4m3_g" + std::to_string(blocks[1]), "preshuffled_fp8", "dyn_row_mslk"};
}

std::string part_int4_e4m3(const NamedTensor&, std::string_view plane) {
  return plane == "scale" ? "group_scale" : std::string(plane);
}

}  // namespace

extern const Decoder kDecoder_int4_e4m3 = {recognize_int4_e4m3, part_int4_e4m3};

}  // namespace qcts
