// SPDX-License-Identifier: BSD-3-Clause
// Joins the experts of gpt-oss (transformers 5.24.0, integrations/mxfp4.py, convert_moe_packed_tensors):
//   gate_up_proj_blocks  uint8 [experts, n, k / 32, 16], pairs of float4_e2m1, low nibble first
//   gate_up_proj_scales  uint8 [experts, n, k / 32]: 2^(byte - 127) for 32 columns
// The model sees gate_up_proj bfloat16 [experts, k, n].
#include "reference/dialects/joins/join.h"

namespace qcts {
namespace {

constexpr std::string_view kBlocks[] = {"_blocks"};
constexpr int64_t kBlockColumns = 32;

std::string refuse_gpt_oss(const nlohmann::ordered_json&) { return ""; }

std::optional<CodedWeight> read_gpt_oss(LayerParts& parts, const QuantConfig&) {
  const Tensor& blocks = parts.need("_blocks", {DType::uint8});
  const Tensor& scales = parts.need("_scales", {DType::uint8});
  if (blocks.shape.size() != 4 || blocks.shape[3] * 2 != kBlockColumns)
    leave_apart("its blocks are not [experts, n, k / 32, 16]");
  const std::vector<int64_t> wanted = {blocks.shape[0], blocks.shape[1], blocks.shape[2]};
  if (scales.shape != wanted) contradict_layer("it does not have one scale per block");
  CodedWeight weight;
  weight.experts = blocks.shape[0];
  weight.rows = blocks.shape[0] * blocks.shape[1];
  weight.columns = blocks.shape[2] * kBlockColumns;
  weight.codes = rows_of_codes(blocks, 4, CodeKind::float4_e2m1, weight.rows, weight.columns);
  weight.scales.values = scales;
  weight.scales.column_block = kBlockColumns;
  weight.scales.rows = weight.rows;
  weight.scales.any_size = true;
  weight.scales.columns = blocks.shape[2];
  weight.transposed = true;
  finish_coded(weight, {});
  weight.scheme = "gpt_oss_mxfp4";
  return weight;
}

}  // namespace

extern const Join kJoin_gpt_oss = {"mxfp4", kBlocks, "", refuse_gpt_oss, read_gpt_oss};

}  // namespace qcts
