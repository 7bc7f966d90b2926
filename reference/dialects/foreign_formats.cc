// SPDX-License-Identifier: BSD-3-Clause
// The formats of other libraries that are recognized but not read. A reader for one of them replaces its row.
#include <array>

#include "reference/dialects/foreign.h"

namespace qcts {
namespace {

// The first row whose parts fit names a weight: the more parts a pattern asks for, the earlier it stands.
constexpr std::array<ForeignFormat, 27> kForeignFormats = {{
    {"bitsandbytes", "bitsandbytes int8, nf4 or fp4", "bitsandbytes bitsandbytes_4bit bitsandbytes_8bit",
     ".weight:i8 .SCB ?.weight_format | .weight:u8,f16,bf16,f32 .weight.quant_map !.weight.absmax "
     "?.weight.quant_state.bitsandbytes__nf4 ?.weight.quant_state.bitsandbytes__fp4 "
     "?.weight.nested_absmax ?.weight.nested_quant_map | .weight .weight.quant_state.bitsandbytes__nf4 | "
     ".weight .weight.quant_state.bitsandbytes__fp4 | :u8 .quant_map !.absmax | :u8 .absmax"},
    {"hqq", "HQQ codes packed across rows", "hqq",
     ".W_q .meta.scale ?.meta.zero ?.meta.shape | .W_q !.scale !.zero ?.shape ?.nbits ?.group_size ?.axis "
     "?.packing ?.compute_dtype"},
    {"quanto", "optimum-quanto codes", "quanto",
     ".weight._data !.weight._scale ?.weight._shift ?.input_scale ?.output_scale"},
    {"exl3", "EXL3 trellis codes", "exl3", ".trellis !.suh !.svh ?.mcg ?.mul1"},
    {"exl2", "EXL2 words", "exl2", ".q_weight:i32 !.q_scale ?.q_scale_max ?.q_groups ?.q_invperm ?.q_perm"},
    {"aqlm", "AQLM codebooks", "aqlm", ".codes !.codebooks ?.scales"},
    {"vptq", "VPTQ codebooks", "vptq",
     ".indices .centroids ?.res_indices ?.res_centroids | .indices .centroids.weight ?.res_indices "
     "?.res_centroids.weight ?.perm ?.weight_scale ?.weight_bias"},
    {"quip", "QuIP# codebooks", "quip", ".Qidxs ?.SU ?.SV ?.Wscale"},
    {"spqr", "SpQR weights with outliers apart", "spqr", ".dense_weights ?.row_offsets ?.col_vals"},
    {"higgs", "HIGGS grids", "higgs", ".qweight .tables !.scales ?.tables2"},
    {"gptq", "GPTQ words with scales and zeros by group", "gptq gptqmodel",
     ".qweight:i32 .g_idx !.scales ?.qzeros | .B:i32 .s ?.g_idx"},
    {"gptq_or_awq", "GPTQ or AWQ words with scales and zeros by group", "auto-round intel/auto-round",
     ".qweight !.scales ?.qzeros"},
    {"awq", "AWQ words with scales and zeros by group", "awq awq_marlin", ""},
    {"mxfp4", "MXFP4 blocks as in gpt-oss", "mxfp4", "_blocks:u8 !_scales"},
    {"fbgemm_fp8", "float8 by FBGEMM", "fbgemm_fp8", ".weight:f8 .input_scale_ub !.weight_scale"},
    {"comfy_fp8", "float8 with ComfyUI's scales", "",
     ".weight:f8 .scale_weight ?.scale_input | .weight .comfy_quant ?.weight_scale ?.input_scale"},
    {"fp8", "float8 with a scale by block or tensor", "fp8 deepseek_v4_fp8 finegrained_fp8",
     ".weight:f8 .weight_scale_inv ?.activation_scale | :f8 _scale_inv ?_activation_scale | .weight:f8,i8 "
     ".scale"},
    {"modelopt", "weights of NVIDIA ModelOpt",
     "modelopt modelopt_fp4 fp8_per_channel_per_token fp8_pb_wo nvfp4 w4a16_nvfp4 mxfp8 w4a16_awq w4a8_awq "
     "w8a8_sq_per_channel w8a16 mixed_precision",
     ".weight:u8 .weight_scale .weight_scale_2 ?.input_scale ?.pre_quant_scale | .weight:u8,i8 .weight_scale "
     ".pre_quant_scale ?.input_scale | _weight:u8 _weight_scale _weight_scale_2 ?_input_scale"},
    {"compressed-tensors", "weights of llm-compressor and compressed-tensors",
     "compressed-tensors compressed_tensors sparseml",
     ".weight_packed .scale_packed ?.meta | .compressed .bitmask ?.shape ?.row_offsets | .weight_packed "
     "!.weight_scale ?.weight_zero_point ?.weight_shape ?.weight_g_idx ?.weight_global_scale "
     "?.input_scale ?.input_global_scale | .weight:i8,u8,f8 .weight_scale .weight_zero_point | "
     "_weight_packed !_weight_scale"},
    {"eetq", "EETQ int8", "eetq", ".weight:i8 .weight_scales"},
    {"weight_scale", "codes with a scale by tensor, row or block (compressed-tensors, ModelOpt, Quark)",
     "quark ptpc_fp8",
     ".weight:f8,i8,u8,i32,f4 .weight_scale ?.input_scale | :f8,i8,u8,f4 _scale ?_zero_point "
     "| :f8,i8,u8,f4 .scale"},
    {"mlx", "MLX words with scales by group", "mlx metal", ".weight:u32 .scales ?.biases"},
    {"group_codes", "codes of a group-quantized layer (torchtune, ExecuTorch)", "",
     ".weight:i8,u8,i16,i32 .scales ?.zeros ?.zero_points | .weight:i8,u8,i32 .scale ?.zero_point ?.zeros"},
    {"bitnet", "ternary weights of BitNet", "bitnet", ""},
    {"fp_quant", "float4 weights of FP-Quant", "fp_quant", ".qweight:u8 .scales .weight_global_scale"},
    {"sinq", "weights of SINQ", "sinq", ""},
    {"scaled_codes", "codes with scales beside them, in a format that is not known here", "", ""},
}};

}  // namespace

std::span<const ForeignFormat> foreign_formats() { return kForeignFormats; }

}  // namespace qcts
