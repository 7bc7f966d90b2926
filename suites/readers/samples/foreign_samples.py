# SPDX-License-Identifier: BSD-3-Clause
"""The names, dtypes and shapes of one layer in each of the formats of other libraries; all values are zeros."""

SIZES = {"I8": 1, "U8": 1, "I16": 2, "U16": 2, "I32": 4, "U32": 4, "I64": 8, "F4": 1, "BOOL": 1, "U64": 8}
SIZES |= {"F8_E4M3": 1, "F8_E5M2": 1, "BF16": 2, "F16": 2, "F32": 4}


def entry(dtype, *shape):
    count = 1
    for size in shape:
        count *= size
    return dtype, list(shape), bytes(count * SIZES[dtype])


M = "model.layers.0.mlp.down_proj"
# name -> (quant_method of config.json or None, the dialect that is named, parts: ending, dtype and shape)
FORMATS = {
    "gptq": ("gptq", "gptq", ".qweight:I32:8x64 .qzeros:I32:2x8 .scales:F16:2x64 .g_idx:I32:64"),
    "gptq_by_keys": (None, "gptq", ".qweight:I32:8x64 .qzeros:I32:2x8 .scales:F16:2x64 .g_idx:I32:64"),
    "gptq_by_shape": (None, "gptq", ".qweight:I32:8x64 .qzeros:I32:2x8 .scales:F16:2x64"),
    "awq": ("awq", "awq", ".qweight:I32:64x8 .qzeros:I32:2x8 .scales:F16:2x64"),
    "awq_by_shape": (None, "awq", ".qweight:I32:64x8 .qzeros:I32:2x8 .scales:F16:2x64"),
    "packed": (
        "compressed-tensors", "compressed-tensors",
        ".weight_packed:I32:64x8 .weight_scale:BF16:64x1 .weight_shape:I64:2",
    ),
    "packed_by_keys": (
        None, "compressed-tensors",
        ".weight_packed:U8:64x32 .weight_scale:F8_E4M3:64x4 .weight_global_scale:F32:1",
    ),
    "int8": ("compressed-tensors", "compressed-tensors", ".weight:I8:64x64 .weight_scale:BF16:64x1"),
    "float8": (None, "weight_scale", ".weight:F8_E4M3:64x64 .weight_scale:F32:64x1"),
    "float8_blocks": ("fp8", "fp8", ".weight:F8_E4M3:200x160 .weight_scale_inv:F32:2x2"),
    "float8_blocks_by_keys": (None, "fp8", ".weight:F8_E4M3:200x160 .weight_scale_inv:F32:2x2"),
    "float8_experts": (None, "fp8", ".gate_up_proj:F8_E4M3:2x64x64 .gate_up_proj_scale_inv:F32:2x1x1"),
    "float8_dot_scale": (None, "fp8", ".weight:F8_E4M3:64x64 .scale:F32:1x1"),
    "comfy": (None, "comfy_fp8", ".weight:F8_E4M3:64x64 .scale_weight:F32:"),
    "modelopt": (
        "modelopt", "modelopt",
        ".weight:U8:64x32 .weight_scale:F8_E4M3:64x4 .weight_scale_2:F32: .input_scale:F32:",
    ),
    "modelopt_by_keys": (None, "modelopt", ".weight:U8:64x32 .weight_scale:F8_E4M3:64x4 .weight_scale_2:F32:"),
    "gpt_oss_by_keys": (None, "mxfp4", ".experts.down_proj_blocks:U8:2x64x2x16 .experts.down_proj_scales:U8:2x64x2"),
    "bnb_int8": ("bitsandbytes", "bitsandbytes", ".weight:I8:64x64 .SCB:F32:64"),
    "bnb_nf4": (
        None, "bitsandbytes",
        ".weight:U8:1x2048 .weight.absmax:F32:64 .weight.quant_map:F32:16 "
        ".weight.quant_state.bitsandbytes__nf4:U8:90",
    ),
    "hqq": (None, "hqq", ".W_q:U8:32x64 .scale:F16:64x1 .zero:F16:64x1"),
    "quanto": (None, "quanto", ".weight._data:I8:64x64 .weight._scale:BF16:64x1"),
    "mlx": (None, "mlx", ".weight:U32:64x8 .scales:F16:64x1 .biases:F16:64x1"),
    "group_codes": (None, "group_codes", ".weight:I8:64x64 .scales:F32:64x2 .zeros:F32:64x2"),
    "unknown_method": ("brand_new", "scaled_codes", ".codes_of_mine:U8:64x32 .my_scale_table:F32:64"),
    "hqq_of_a_pickle": (None, "hqq", ".W_q:U8:32x64 .meta.scale:F16:64x1 .meta.zero:F16:64x1"),
    "marlin24": (None, "compressed-tensors", ".weight_packed:I32:2x128 .scale_packed:F16:1x64 .meta:I16:2x16"),
    "vptq": (None, "vptq", ".indices:I32:1x4x8 .centroids.weight:F16:1x2048 .weight_scale:F16:64"),
    "tensorrt_llm": (None, "tensorrt_llm", ".weight:F8_E4M3:64x64 .weights_scaling_factor:F32:1 .activation_scaling_factor:F32:1"),
    "lookup_table": (None, "scaled_codes", ".weight_codes:U8:64x64 .weight_lut:F16:16"),
    "palette": (None, "scaled_codes", ".indices:U8:64x64 .palette:F16:16"),
    "unknown_keys": (None, "scaled_codes", ".kernel:I8:64x64 .kernel_absmax:F32:64"),
    "words_below_a_weight": (None, "scaled_codes", ".weight.packed:I32:64x8 .weight.absmax:F32:64x1"),
    "words_of_a_weight": (None, "scaled_codes", ".weight.words:I32:64x8 .weight.absmax:F32:64x1"),
    "packed_words": (None, "scaled_codes", ".kernel_packed:U32:64x8 .kernel_scale:F16:64x1"),
    "words_of_codes": (None, "scaled_codes", ".codes:I16:64x32 .absmax:F32:64x1"),
    "eetq_of_its_library": (None, "eetq", ".qweight:I8:64x64 .weight_scales:F16:64"),
    "quanto_int4": (None, "quanto", ".weight._data._data:U8:32x64 .weight._scale:BF16:64x1 .weight._shift:I8:64x1"),
    "quanto_float8": (None, "quanto", ".weight._data:F8_E4M3:64x64 .weight._scale:BF16:64x1 .output_scale:BF16:1"),
    "transformer_engine": (None, "transformer_engine", ".weight._data:U8:64x64 .weight._scale_inv:F32:1"),
    "fp_quant": (
        None, "fp_quant",
        ".qweight:U8:64x32 .scales:U8:64x2 .weight_global_scale:F32:1 .act_global_scale:F32:1 "
        ".forward_hadamard_matrix:BF16:32x32 .backward_hadamard_matrix:BF16:32x32",
    ),
    "higgs": (None, "higgs", ".weight:I16:64x16 .scales:F16:64x1 .tables:F16:16x2 .tables2:F16:16x16x2"),
    "bitnet": ("bitnet", "bitnet", ".weight:U8:16x64 .weight_scale:BF16:1"),
    "quark_hf": ("quark", "quark", ".weight:U8:64x32 .weight_quantizer.scale:U8:64x2"),
    "quark_hf_by_keys": (None, "quark", ".weight:F8_E4M3:64x64 .weight_quantizer.scale:F32: .input_quantizer.scale:F32:"),
    "quark_zero_points": (None, "quark", ".weight:I8:64x64 .weight_quantizer.scale:F32:64 .weight_quantizer.zero_point:I32:64"),
    "modelopt_compressed": (
        None, "modelopt",
        ".weight:U8:64x32 .weight_quantizer._scale:F8_E4M3:64x4 .weight_quantizer._double_scale:F32: .input_quantizer._amax:F32:",
    ),
    "auto_round_mxfp4": ("auto-round", "auto-round", ".weight_packed:U8:64x32 .weight_scale:U8:64x2"),
    "intel_neural_compressor": ("inc", "auto-round", ".qweight:I32:8x64 .qzeros:I32:2x8 .scales:F16:2x64"),
    "qqq": ("qqq", "qqq", ".B:I32:4x128 .s_channel:F32:1x64 .s_group:F16:2x64"),
    "qqq_by_keys": (None, "qqq", ".B:I32:4x128 .s_channel:F32:1x64 .s_group:F16:2x64"),
    "marlin": (None, "gptq", ".B:I32:4x128 .s:F16:1x64 .workspace:I32:16"),
    "marlin_sparse": (None, "gptq", ".B_24:I32:2x128 .B_meta:I16:2x16 .s:F16:1x64 .workspace:I32:16"),
    "bitblas": (None, "bitblas", ".qweight:I8:64x32 .scales:F16:64x1 .zeros:I8:1x32"),
    "squeezellm": (None, "squeezellm", ".qweight:I32:8x64 .lookup_table:F16:64x16 .rows:I32:65 .cols:I32:10 .vals:F32:10"),
    "any_precision": (None, "any_precision", ".qweight:I32:4x64x2 .lut3:F16:64x8 .lut4:F16:64x16"),
    "smoothquant": (None, "smoothquant", ".weight:I8:64x64 .a:F32:1 .b:F32:1"),
    "svdquant_int4": (
        None, "svdquant",
        ".qweight:I8:64x32 .wscales:BF16:1x64 .smooth_factor:BF16:64 .smooth_factor_orig:BF16:64 .lora_down:BF16:64x16 "
        ".lora_up:BF16:64x16",
    ),
    "svdquant_fp4": (
        None, "svdquant",
        ".qweight:I8:64x32 .wscales:F8_E4M3:4x64 .wtscale:BF16:1 .wcscales:BF16:64 .proj_down:BF16:64x16 .proj_up:BF16:64x16",
    ),
    "svdquant_awq": (None, "svdquant", ".qweight:I32:16x32 .wscales:BF16:1x64 .wzeros:BF16:1x64"),
    "mistral": (None, "mistral_fp8", ".weight:F8_E4M3:64x64 .qscale_weight:F32: .qscale_act:F32:"),
    "gpt_oss_original": (None, "mxfp4", ".mlp1_weight.blocks:U8:2x64x2x16 .mlp1_weight.scales:U8:2x64x2"),
    "qtip": (None, "qtip", ".trellis:I16:64x16 .SU:F16:64 .SV:F16:64 .rcp:U8: .tlut:F16:512x2"),
    "quip_of_two_stages": (None, "quip", ".Qidxs_0:I64:64x8 .Qidxs_1:I64:64x8 .SU:F16:64 .SV:F16:64 .Wscale:F32:"),
    "hqq_zeros_quantized": (
        None, "hqq",
        ".W_q:U8:32x64 .meta.scale:F16:64x1 .meta.zero_q:U8:64x1 .meta.meta_zero.scale:F16:1 .meta.meta_zero.zero:F16:1",
    ),
    "hqq_both_quantized": (
        None, "hqq",
        ".W_q:U8:32x64 .meta.scale_q:U8:64x1 .meta.zero_q:U8:64x1 .meta.meta_scale.scale:F16:1 .meta.meta_zero.scale:F16:1",
    ),
    "bnb_optimizer": (
        None, "bitsandbytes",
        ".state1:U8:64x64 .absmax1:F32:16 .qmap1:F32:256 .state2:U8:64x64 .absmax2:F32:16 .qmap2:F32:256",
    ),
    "bnb_experts": (
        None, "bitsandbytes",
        ".gate_up_proj:U8:1x4096 .gate_up_proj.absmax:F32:128 .gate_up_proj.quant_map:F32:16 "
        ".gate_up_proj.quant_state.bitsandbytes__nf4:U8:90",
    ),
    "lit_gptq": (None, "scaled_codes", ".quant_weight:U8:32x64 .scales:F16:2x64 .zeros:F16:2x64"),
    "comfy_nvfp4": (None, "comfy_quant", ".weight:U8:64x32 .comfy_quant:U8:30 .weight_scale:F8_E4M3:64x4 .weight_scale_2:F32:"),
    "tensorrt_llm_int8": (None, "tensorrt_llm", ".weight:I8:64x64 .per_channel_scale:F16:64"),
    "awq_gemv": (None, "awq", ".qweight:I32:64x16 .qzeros:I32:64x1 .scales:F16:64x8"),
    "awq_gemv_fast": (None, "awq", ".qweight:I16:16x64 .scales:F16:1x64 .qzeros:F16:1x64"),
    "nncf": (None, "scaled_codes", ".weight:U8:64x64 .pre_ops.0._scale:F16:64x1 .pre_ops.0._zero_point:U8:64x1"),
    "exl3": (None, "exl3", ".trellis:I16:8x8x48 .suh:F16:64 .svh:F16:64"),
    "packed_experts": (None, "compressed-tensors", ".experts.w1_weight_packed:I32:2x64x8 .experts.w1_weight_scale:F16:2x64x1"),
    "codes_alone": (None, "scaled_codes", ".qweight:I32:8x64"),
}


def named(parts):
    tensors = {"model.norm.weight": entry("BF16", 64)}
    for part in parts.split():
        ending, dtype, shape = part.split(":")
        tensors[M + ending] = entry(dtype, *(int(size) for size in shape.split("x") if size))
    return tensors
