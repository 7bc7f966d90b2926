// SPDX-License-Identifier: BSD-3-Clause
// The formats of other libraries that are recognized. A join (../joins) reads the weights of some of them.
#include <array>

#include "reference/dialects/foreign/foreign.h"

namespace qcts {
namespace {

// The first row whose parts fit names a weight: the more parts a pattern requires, the earlier it comes.
constexpr std::array<ForeignFormat, 41> kForeignFormats = {{
    {"bitsandbytes", "bitsandbytes int8, nf4 or fp4", "bitsandbytes bitsandbytes_4bit bitsandbytes_8bit",
     ".weight:i8 .SCB ?.weight_format | .weight:u8,f16,bf16,f32 .weight.quant_map !.weight.absmax | .weight "
     ".weight.quant_state.bitsandbytes__nf4 | .weight .weight.quant_state.bitsandbytes__fp4 | :u8 .quant_map "
     "!.absmax | :u8 .absmax | .state1:u8 !.absmax1 ?.qmap1 ?.state2 ?.absmax2 ?.qmap2"},
    {"torchao_keys", "torchao's keys without their metadata: save them with flatten_tensor_state_dict", "",
     "_qdata _scale | _qdata _scale_and_zero | :qdata:i8,u8,i32,f8,f4 :scale:f32,f16,bf16,f8,u8 | "
     ":qdata:i8,u8,i32 :scale_and_zero:f32,f16,bf16"},
    {"hqq", "HQQ codes packed across rows", "hqq",
     ".W_q .meta.scale | .W_q .meta.scale_q | .W_q !.scale !.zero"},
    {"transformer_engine", "Transformer Engine float8", "", ".weight._data .weight._scale_inv"},
    {"quanto", "optimum-quanto codes", "quanto",
     ".weight._data !.weight._scale ?.input_scale ?.output_scale | .weight._data._data !.weight._scale "
     "?.input_scale ?.output_scale"},
    {"qtip", "QTIP trellis codes", "", ".trellis .SU .SV"},
    {"exl3", "EXL3 trellis codes", "exl3", ".trellis !.suh !.svh ?.mcg ?.mul1"},
    {"exl2", "EXL2 words", "exl2", ".q_weight:i32 !.q_scale ?.q_scale_max ?.q_groups ?.q_invperm ?.q_perm"},
    {"aqlm", "AQLM codebooks", "aqlm", ".codes .codebooks ?.scales"},
    {"vptq", "VPTQ codebooks", "vptq",
     ".indices .centroids ?.res_indices ?.res_centroids | .indices .centroids.weight ?.res_indices "
     "?.res_centroids.weight"},
    {"quip", "QuIP# codebooks", "quip", ".Qidxs ?.SU ?.SV | .Qidxs_0 ?.Qidxs_1 ?.SU ?.SV"},
    {"spqr", "SpQR weights with separate outliers", "spqr", ".dense_weights ?.row_offsets ?.col_vals"},
    {"higgs", "HIGGS grids", "higgs", ".qweight .tables !.scales | .weight .tables .scales"},
    {"svdquant", "Nunchaku SVDQuant weights", "svdquant nunchaku nunchaku_lite", ".qweight .wscales"},
    {"squeezellm", "SqueezeLLM words with a table per row", "squeezellm", ".qweight .lookup_table"},
    {"any_precision", "Any-Precision LLM words with tables per row", "",
     ".qweight .lut2 | .qweight .lut3 | .qweight .lut4 | .qweight .lut5 | .qweight .lut6 | .qweight .lut8"},
    {"fp_quant", "FP-Quant float4 weights", "fp_quant", ".qweight:u8 .scales .weight_global_scale"},
    {"bitblas", "BitBLAS weights", "bitblas gptq_bitblas", ".qweight:i8 .scales .zeros"},
    {"qqq", "QQQ words with scales per channel and group", "qqq", ".B:i32 .s_channel | .B:i32 .s_group"},
    {"gptq", "GPTQ words with scales and zeros per group", "gptq gptqmodel marlin gptq_marlin gptq_marlin_24",
     ".qweight:i8,i16,i32,i64 .g_idx !.scales ?.qzeros | .B:i32 .s | .B_24:i32 .s"},
    {"gptq_or_awq", "GPTQ or AWQ words with scales and zeros per group", "",
     ".qweight:i16,i32,i64 .scales | .qweight:i16,i32,i64 .qzeros !.scales"},
    {"awq", "AWQ words with scales and zeros per group", "awq awq_marlin", ""},
    {"auto-round", "AutoRound weights", "auto-round intel/auto-round inc", ""},
    {"mxfp4", "MXFP4 blocks as in gpt-oss", "mxfp4", "_blocks:u8 !_scales | .blocks:u8 .scales"},
    {"fbgemm_fp8", "FBGEMM float8", "fbgemm_fp8", ".weight:f8 .input_scale_ub !.weight_scale"},
    {"comfy_fp8", "float8 with ComfyUI's scales", "", ".weight:f8 .scale_weight ?.scale_input"},
    {"comfy_quant", "weights quantized for ComfyUI", "", ".weight:f4,f8,i8,u8,i32 .comfy_quant"},
    {"mistral_fp8", "float8 under Mistral's own names", "", ".weight:f8 .qscale_weight ?.qscale_act"},
    {"fp8", "float8 with a scale per block or tensor", "fp8 deepseek_v4_fp8 finegrained_fp8",
     ".weight:f8 .weight_scale_inv ?.activation_scale | :f8 _scale_inv ?_activation_scale | .weight:f8,i8 "
     ".scale"},
    {"modelopt", "NVIDIA ModelOpt weights",
     "modelopt modelopt_fp4 fp8_per_channel_per_token fp8_pb_wo nvfp4 w4a16_nvfp4 mxfp8 w4a16_awq w4a8_awq "
     "w8a8_sq_per_channel w8a16 mixed_precision",
     ".weight:u8 .weight_scale .weight_scale_2 ?.input_scale ?.pre_quant_scale | .weight:u8,i8 .weight_scale "
     ".pre_quant_scale ?.input_scale | .weight:u8,i8,f8 .weight_quantizer._scale | _weight:u8 _weight_scale "
     "_weight_scale_2 ?_input_scale"},
    {"compressed-tensors", "llm-compressor and compressed-tensors weights",
     "compressed-tensors compressed_tensors sparseml",
     ".weight_packed .scale_packed ?.meta | .compressed .bitmask ?.shape ?.row_offsets | .weight_packed "
     "!.weight_scale ?.weight_zero_point ?.weight_shape ?.weight_g_idx ?.weight_global_scale "
     "?.input_scale ?.input_global_scale | .weight:i8,u8,f8 .weight_scale .weight_zero_point | "
     "_weight_packed !_weight_scale"},
    {"eetq", "EETQ int8", "eetq", ".weight:i8 .weight_scales | .qweight:i8 .weight_scales"},
    {"tensorrt_llm", "TensorRT-LLM weights", "",
     ".weight:f8,i8,u8 .weights_scaling_factor | .weight:i8,u8 .per_channel_scale"},
    {"quark", "AMD Quark weights", "quark ptpc_fp8",
     ".weight:f8,i8,u8,i32 .weight_quantizer.scale ?.weight_quantizer.zero_point"},
    {"weight_scale", "codes with a scale per tensor, row or block (compressed-tensors, ModelOpt, Quark)", "",
     ".weight:f8,i8,u8,i32,f4 .weight_scale ?.input_scale | :f8,i8,u8,f4 _scale ?_zero_point "
     "| :f8,i8,u8,f4 .scale"},
    {"mlx", "MLX words with scales per group", "mlx metal", ".weight:u32 .scales ?.biases"},
    {"group_codes", "codes of a group-quantized layer (torchtune, ExecuTorch)", "",
     ".weight:i8,u8,i16,i32 .scales ?.zeros ?.zero_points | .weight:i8,u8,i32 .scale ?.zero_point ?.zeros"},
    {"bitnet", "BitNet ternary weights", "bitnet", ""},
    {"sinq", "SINQ weights", "sinq", ""},
    {"smoothquant", "SmoothQuant int8 weights", "", ".weight:i8 .a ?.b"},
    {"scaled_codes", "codes with scales next to them, in an unknown format", "", ""},
}};

}  // namespace

std::span<const ForeignFormat> foreign_formats() { return kForeignFormats; }

}  // namespace qcts
