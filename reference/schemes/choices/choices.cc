// SPDX-License-Identifier: BSD-3-Clause
#include "reference/schemes/choices/choices.h"

#include <algorithm>
#include <array>

namespace qcts {
namespace {

bool names(std::string_view list, std::string_view word) {
  for (size_t first = 0; first < list.size();) {
    const size_t end = std::min(list.find(' ', first), list.size());
    if (list.substr(first, end - first) == word) return true;
    first = end + 1;
  }
  return false;
}

constexpr std::string_view kMxByExponent =
    "mxfp8_e4m3_floor mxfp8_e4m3_ceil mxfp8_e4m3_even mxfp8_e5m2_floor mxfp8_e5m2_ceil mxfp8_e5m2_even "
    "mxfp6_e2m3_floor mxfp6_e2m3_ceil mxfp6_e2m3_even mxfp6_e3m2_floor mxfp6_e3m2_ceil mxfp6_e3m2_even "
    "mxfp4_floor mxfp4_ceil mxfp4_even";

std::vector<ChoiceEntry> make_ledger() {
  return {
      {"int8_range",
       "what divides max|w| to give the scale of symmetric int8 weights",
       false,
       {{"int8_range_127_5", "127.5", "int8_row int8_tensor int8_group int8_row_v1 int8_group_v1",
         "compressed-tensors 0.20.0",
         "torchao 0.18.0, quant_primitives.py, _choose_qparams_affine: (quant_max - quant_min) / 2"},
        {"int8_range_63_5", "63.5: reduce_range keeps codes from -64 to 63",
         "int8_row_reduced int8_tensor_reduced", "", "torchao 0.18.0, int8_tensor.py, from_hp"},
        {"tinyq_127", "127", "tinyq", "bitsandbytes, GGML Q8_0, torchao's int8 training",
         "TinyQ 006b7b9, utils.py, get_q_scale_symmetric; 9 codes in 100 differ from 127.5's"}}},
      {"int8_activation_range",
       "what divides a token's max|x| to give the scale of symmetric int8 activations",
       false,
       {{"int8_activation_codes_all", "127.5 (63.5 with reduce_range), the scale in float32",
         "int8_row int8_tensor int8_row_reduced int8_tensor_reduced", "",
         "torchao 0.18.0, int8_tensor.py, from_hp of x"},
        {"int8_activation_codes_127", "127, the scale in x's dtype and at least 1e-5", "int8_row_v1",
         "torchao 0.5.0 to 0.17.0; int8_row has it as dyn_row_sym_127",
         "torchao 0.13.0, quant_api.py, _int8_symm_per_token_reduced_range_quant; goldens */int8dq"},
        {"int8_activation_codes_127_f32", "127, the scale in float32 and at least 1e-5", "",
         "torchao 0.7.0 to 0.17.0, which intx has as dyn_token_sym_127_s32",
         "torchao 0.13.0, quant_api.py, _int8_symm_per_token_quant (8da4w, Marlin QQQ); goldens "
         "*/int8da_int4w_sym"},
        {"int8_activation_cutlass", "127.5, 7.5 for four bits, the scale in float32 and at least 2^-23", "",
         "torchao 0.10.0 to 0.15.0, which intx has as dyn_token_sym_s32 and dyn_token_sym_b4_s32",
         "torchao 0.15.0, quant_api.py, _int8_symm_cutlass_quant, _int4_symm_cutlass_quant; goldens "
         "*/int8da_int4w_cutlass, */int4da_int4w"},
        {"int8_activation_cutlass_x", "127, 7.5 for four bits, the scale in x's dtype and at least 1e-5", "",
         "torchao 0.9.0, which intx has as dyn_token_sym_127 and dyn_token_sym_b4",
         "goldens torchao_0_9_0/int8da_int4w_cutlass, int4da_int4w"}}},
      {"one_token",
       "is x of [batch, 1, K] quantized like any other",
       false,
       {{"one_token_quantized", "yes", "int8_row intx fp8_row fp8 int8_row_v1", "",
         "torchao 0.18.0, int8_tensor.py"},
        {"one_token_as_it_is",
         "no: x.shape[1] == 1 is unchanged; x of two dimensions is quantized, and only that is judged", "",
         "torchao 0.8.0 to 0.17.0 with weight_only_decode=True",
         "torchao 0.13.0, quant_api.py, _int8_symm_per_token_reduced_range_quant_noop_decode; goldens "
         "*/int8dq_decode"}}},
      {"asymmetric_token_scale",
       "in which type does the function of one name compute the scale and codes of an asymmetric int8 token",
       false,
       {{"asymmetric_token_scale_f32", "float32 scales of at least 2^-23, codes in float32",
         "int8_row intx int8_row_v1", "",
         "torchao 0.11.0 to 0.17.0, quant_api.py, _int8_asymm_per_token_quant (the minimum scale since "
         "0.12.0); "
         "goldens */int8dq_asym, */int8da_int4w; intx has it as dyn_token_asym_s32"},
        {"asymmetric_token_scale_f64", "float64 scales, codes in float64", "",
         "torchao 0.7.0 to 0.10.0; the file names the same function, so it is read as the float32 one",
         "quant_api.py of those versions, run: of 64 codes per token in bfloat16 some differ"},
        {"asymmetric_token_scale_x", "scale and codes in x's dtype, the scale at least its epsilon", "",
         "torchao 0.5.0, 0.6.1: for float32 it is the first; intx has it as dyn_token_asym_eps",
         "golden torchao_0_5_0/int8da_int4w"},
        {"asymmetric_token_codes_uint8", "as the first, codes 0 .. 255", "",
         "torchao 0.12.0 to 0.17.0, which intx has as dyn_token_asym_u8_s32",
         "torchao 0.12.0, quant_api.py, _uint8_asymm_per_token_quant; goldens */int8da_int4w_uint8"}}},
      {"float8_activation_division",
       "is a float8 activation divided by its scale, or multiplied by its reciprocal",
       false,
       {{"float8_activation_divided", "x / scale, with no minimum scale", "fp8_row fp8", "",
         "torchao 0.18.0, _quantize_affine_float8; torchao 0.12.0 to 0.15.0, "
         "_input_activation_quant_func_fp8; "
         "goldens torchao_0_13_0/fp8dq, fp8dq_row"},
        {"float8_activation_reciprocal", "x * (1 / scale), the scale at least 2^-23 unless it is given", "",
         "torchao 0.7.0 to 0.11.0, which fp8_row and fp8 have as dyn_row_recip, dyn_tensor_recip, "
         "static_tensor_recip; a file with quant_min is theirs",
         "goldens torchao_0_7_0/fp8dq (7 of 192 codes differ from a division's), torchao_0_11_0/fp8st"},
        {"float8_activation_fbgemm",
         "x / scale, the scale at most activation_scale_ub / 448, at least 1 / (512 * 448)", "float_weight",
         "torchao 0.11.0 to 0.15.0 FbgemmFp8Tensor, which fp8_row has as dyn_row_fbgemm",
         "fbgemm_gpu quantize.cu, dynamicQuantizeMatrixRowwise; by source, not run here"},
        {"float8_activation_mslk", "x / scale, the row's largest magnitude at least 1/512",
         "int4_plain_sym_g32 int4_plain_sym_g64 int4_plain_sym_g128 int4_plain_sym_g256 int4_e4m3",
         "torchao's kernels on H100; fp8_row has it as dyn_row_mslk",
         "MSLK 0017d3d (since 1.1.0), fp8_quantize.py, _kernel_quantize_fp8_row; by source, not run here"},
        {"float8_activation_mslk_1_0", "x * (448 / the row's largest magnitude, at least 1e-12)", "",
         "MSLK 1.0.0; a file does not record which version will run it",
         "fp8_quantize.py of v1.0.0; by source, not run here"}}},
      {"ao_2338_bound",
       "does activation_scale_ub of pytorch/ao#2338 act on x",
       false,
       {{"ao_2338_bound_acts", "it bounds the largest magnitude of a row of x", "float_weight", "",
         "torchao 0.13.0 fbgemm_fp8_tensor.py, linear: quantize_fp8_per_row(x, .., activation_scale_ub)"},
        {"ao_2338_bound_kept", "x is quantized without it, and only stores it", "",
         "torchao 0.12.0 and 0.13.0 to_fbgemm_fp8, whose result no linear takes with a plain weight",
         "torchao 0.13.0 fbgemm_fp8_tensor.py, from_float; run here: AttributeError"}}},
      {"int8_division",
       "is the weight divided by the scale, or multiplied by its reciprocal",
       false,
       {{"int8_reciprocal_multiply", "round(w * (1 / scale)), in float32",
         "int8_row int8_tensor int8_group int8_row_reduced int8_tensor_reduced", "",
         "torchao 0.18.0, quant_primitives.py, quantize_affine; 1 code in 10,000 differs"},
        {"intx_reciprocal_rounded", "round(w * r), r = 1 / scale and the product each in the weight's dtype",
         "intx int4_int32 int8_row_v1 int8_group_v1", "",
         "torchao 0.18.0, quant_primitives.py, quantize_affine with a scale of the weight's dtype; goldens "
         "*/int8_weight_only: one bfloat16 code in seven differs from int8_row's"},
        {"int4_plain_float32",
         "round((w - min) / scale) in float32, before scale and zero are rounded to the dtype", "int4_plain",
         "", "fbgemm-gpu-genai 1.4.2, experimental/gen_ai/quantize.py, int4_row_quantize_zp"},
        {"tinyq_divide", "round(w / scale)", "tinyq", "compressed-tensors 0.20.0",
         "TinyQ 006b7b9, utils.py, linear_q_with_scale_and_zero_point"}}},
      {"rounding_half",
       "where does a value halfway between two codes go",
       false,
       {{"half_even", "to the even code",
         "int8_row int8_tensor int8_group int8_row_reduced int8_tensor_reduced intx int4_tinygemm int4_plain "
         "int4_int32 int4_e4m3 fp8_row fp8 mx nvfp4 tinyq int8_row_v1 int8_group_v1",
         "", "torch.round, torch 2.13; the halfway goldens"},
        {"gguf_never_rounds", "nowhere: codes, scales and minima stay floats", "gguf_proto", "",
         "torchao 0.18.0, quant_primitives.py, _quantize_gguf"},
        {"half_away", "away from zero", "", "GGML (roundf)", "ggml-quants.c, quantize_row_q8_0_ref"}}},
      {"clamp",
       "are codes clamped to the range, and when",
       false,
       {{"clamp_after_round", "after rounding",
         "int8_row int8_tensor int8_group int8_row_reduced int8_tensor_reduced intx int4_tinygemm int4_plain "
         "int4_int32 int4_e4m3 tinyq_w8a32 int8_row_v1 int8_group_v1",
         "", "torchao 0.18.0, quantize_affine; TinyQ 006b7b9, linear_q_with_scale_and_zero_point"},
        {"clamp_before_round", "before rounding", "fp8_row", "compressed-tensors 0.20.0",
         "torchao 0.18.0, _quantize_affine_float8: clamp, then the cast rounds"},
        {"tinyq_w8a16_no_clamp", "never: 128 wraps to -128", "tinyq_w8a16", "",
         "TinyQ 006b7b9, tinyq.py, W8A16LinearLayer.quantize; golden tinyq_006b7b9/w8a16/toy_bfloat16"}}},
      {"zero_row",
       "what is the scale of a row or group of zeros",
       false,
       {{"int8_floor_2_23", "2^-23, the epsilon of float32, in every dtype",
         "int8_row int8_tensor int8_group int8_row_reduced int8_tensor_reduced int8_row_v1 int8_group_v1", "",
         "torchao 0.18.0, int8_tensor.py, from_hp"},
        {"intx_floor_smallest_normal", "at least the smallest normal of the dtype", "intx", "",
         "torchao 0.18.0, choose_qparams_affine without eps"},
        {"int4_plain_range_1e_6", "a fifteenth of 1e-6 (symmetric: an eighth), in float32", "int4_plain", "",
         "fbgemm-gpu-genai 1.4.2, int4_row_quantize_zp: (max - min).clamp(min=1e-6) / 15"},
        {"gguf_zero_row_nan", "0, and the scales of scales and the codes are NaN", "gguf_proto", "",
         "torchao 0.18.0, _choose_qparams_gguf; goldens torchao_0_18_0/gguf_proto"},
        {"int4_eps_1e_6", "at least 1e-6, rounded to the dtype", "int4_tinygemm int4_int32", "",
         "torchao 0.18.0, int4_opaque_tensor.py, from_hp; torchao 0.13.0, quant_api.py"},
        {"int4_eps_smallest_normal", "at least the smallest normal of the dtype (tile_packed_4d)", "",
         "torchao", "torchao 0.18.0, int4_tile_packed_to_4d_tensor.py, from_hp: no eps is passed"},
        {"fp8_zero_row_nan", "0, and the codes are NaN", "fp8_row", "",
         "torchao 0.18.0, quant_primitives.py, _choose_scale_float8"},
        {"fp8_floor_1_512", "the row's maximum is at least 1/512", "int4_e4m3",
         "torchao's kernels on H100 (MSLK, FBGEMM)", "fbgemm_gpu quantize_fp8_row; by source, not run here"},
        {"tinyq_zero_row", "0, and the codes are the int8 of NaN, which is 0 on x86", "tinyq", "",
         "goldens tinyq_006b7b9/*/zero_row"}}},
      {"nan_to_int8",
       "what integer does NaN become",
       true,
       {{"nan_code_zero", "0: float32 to int8 goes through int32, whose indefinite value ends in a zero byte",
         "int8_row int8_tensor int8_group int8_row_reduced int8_tensor_reduced intx int4_plain "
         "int4_e4m3 tinyq int8_row_v1 int8_group_v1",
         "", "torch 2.13.0 on x86-64; undefined in C++"}}},
      {"int8_zero_point_part",
       "when does a linear with asymmetric rows of x subtract the zero point's term",
       false,
       {{"int8_zero_point_exact", "in the integer sum, before anything is rounded",
         "int8_row int8_row_reduced int8_tensor int8_tensor_reduced", "",
         "derivation: the sum of (qx - zx) * qw is an integer below 2^31 for k <= 65,536"},
        {"int8_half_overflow",
         "after this term and the product were rounded to x's dtype: in float16 both can overflow and leave "
         "NaN",
         "", "torchao's own linear",
         "torchao 0.18.0, int8_tensor.py, linear: y_dot_scaled.to(output_dtype) - "
         "zp_correction.to(output_dtype)"}}},
      {"int4_multiply_add",
       "is code * scale + zero rounded once or twice",
       false,
       {{"int4_fma_once", "once: round(fma(code - 8, scale, zero))", "int4_tinygemm int4_plain", "",
         "torch 2.13.0, int4mm_kernel.cpp; one-hot rows through it"},
        {"int4_folded_zero",
         "as code * scale + (zero - 8 * scale), the bracket rounded to float32: a weight near 0 is off by "
         "that rounding",
         "", "ATen's AVX2 kernel, only bfloat16",
         "torch 2.13.0, aten::_weight_int4pack_mm_for_cpu; one-hot rows through HQQ's weights, code 8"},
        {"int4_dequant_two_roundings",
         "twice, each in the dtype: 5 to 7 values in 100 of bfloat16 weights differ from what the kernel of "
         "the "
         "same version multiplies by",
         "gguf_proto",
         "dequantize() of torchao 0.5 to 0.15 on an int4 AffineQuantizedTensor; its linear in PlainLayout of "
         "0.5 to 0.7. qcts dequantize gives the kernel's weights",
         "torchao 0.9.0, quant_primitives.py, _dequantize_affine_float_zero_point against one-hot rows "
         "through "
         "_weight_int4pack_mm_for_cpu; goldens torchao_0_9_0/int4wo, int4_weight_only"}}},
      {"int4_weight_below_float8_x",
       "in which form does a linear with float8 x multiply int4 weights",
       true,
       {{"int4_weight_exact", "as code * scale + zero, unrounded",
         "int4_plain_sym_g32 int4_plain_sym_g64 int4_plain_sym_g128 int4_plain_sym_g256", "",
         "derivation: the oracle's; a kernel that rounds them declares weight_cast"},
        {"int4_below_float8_x", "formed in the dtype of the scale, then rounded to float8_e4m3fn", "",
         "MSLK's f8i4bf16_rowwise on H100",
         "MSLK 0017d3d f8i4bf16_rowwise.cu; CUTLASS mixed_input_utils.hpp, dequantize_A_kblock; by source, "
         "not "
         "run here"},
        {"int4_table_e4m3", "as in its file's table: rounded to float8_e4m3fn with the scale of its group",
         "int4_e4m3", "MSLK's f8i4bf16_shuffled on H100",
         "CUTLASS mixed_dtype_utils.hpp, packed_scale_t; by source, not run here"}}},
      {"e4m3_row_scale",
       "what gives the row's scale of int4 weights with float8 group scales",
       false,
       {{"row_scale_of_weights", "from the row's weights, which become float8 before they become int4",
         "int4_e4m3", "",
         "MSLK 0017d3d shuffle.py, quantize_int4_preshuffle; golden torchao_0_18_0/int4_e4m3_*"},
        {"row_scale_of_groups", "the largest scale of the row's groups; each group's scale is relative to it",
         "", "torchao's conversion of an Int4Tensor, whose file looks the same",
         "torchao 0.18.0, int4_preshuffled_tensor.py, from_int4_tensor"}}},
      {"int4_nibble_order",
       "which nibble of a byte holds the even column",
       false,
       {{"nibble_even_low", "the low one", "int4_plain int4_int32 int4_e4m3",
         "torchao Int4Tensor, CutlassInt4PackedLayout; compressed-tensors",
         "torchao 0.9.0, cutlass_int4_packed_layout.py, get_plain"},
        {"nibble_even_high", "the high one", "int4_tinygemm", "bitsandbytes",
         "torch 2.13.0, _convert_weight_to_int4pack takes even << 4 | odd"}}},
      {"int8_sum_order",
       "is the scale applied before the sum or to the finished row",
       true,
       {{"scale_after_sum", "on the sum: linear(x, q) * s",
         "int8_row int8_tensor int8_row_reduced int8_tensor_reduced tinyq_w8a16 int8_row_v1", "",
         "torchao 0.18.0, int8_tensor.py; TinyQ 006b7b9, w8_a16_forward"},
        {"scale_before_sum", "on the weight: linear(x, q * s)",
         "tinyq_w8a32 fp8_row int4_tinygemm int8_group intx gguf_proto int8_group_v1", "",
         "TinyQ 006b7b9, w8_a32_forward; torchao 0.18.0, float8_tensor.py"}}},
      {"zero_point_stored",
       "is a zero point stored where it is always zero, and in which type",
       false,
       {{"zero_point_int8", "int8",
         "int8_row int8_tensor int8_group int8_row_reduced int8_tensor_reduced intx", "",
         "torchao 0.18.0, Int8Tensor, IntxUnpackedToInt8Tensor"},
        {"zero_point_int64", "int64: eight bytes per row", "int8_row_v1 int8_group_v1",
         "torchao 0.5 to 0.17, AffineQuantizedTensor of int8wo", "goldens torchao_*/int8wo"},
        {"zero_point_none", "none", "fp8_row tinyq_w8a16", "torchao 0.9 to 0.17, int8 dynamic",
         "goldens torchao_0_9_0/int8dq"},
        {"tinyq_zero_points_unread", "int32, and forward never reads them", "tinyq_w8a32", "",
         "TinyQ 006b7b9, tinyq.py, W8A32LinearLayer.forward passes z_w=0"}}},
      {"activation_zero_point",
       "when is the zero point of int8 activations subtracted",
       true,
       {{"int8_zero_point_after_rounding",
         "after the scaled sum was rounded to x's dtype; its own term is rounded too",
         "int8_row int8_tensor int8_row_reduced int8_tensor_reduced", "",
         "torchao 0.18.0, int8_tensor.py, linear"},
        {"int8_zero_point_in_the_sum", "in the int32 sum, before any rounding", "",
         "kernels of LibTorch and oneDNN", "by source, not run here"},
        {"dequantized_first", "before the sum: x is dequantized to its own dtype", "intx", "",
         "torchao 0.18.0, intx_unpacked_to_int8_tensor.py, linear"}}},
      {"one_bit_symmetric",
       "what do the codes -1 and 0 of symmetric one-bit weights mean",
       false,
       {{"int1_symmetric_is_zero", "nothing: the scale is twice max|w|, and every code rounds to 0",
         "intx_b1_axis_sym intx_b1_g32_sym intx_b1_g64_sym intx_b1_g128_sym intx_b1_g256_sym", "",
         "torchao 0.18.0, _choose_qparams_affine: (quant_max - quant_min) / 2 = 0.5"}}},
      {"division_of_the_scale",
       "in which type is the scale formed",
       false,
       {{"scale_in_weight_dtype", "the weight's own, then widened where scales are wider",
         "int8_row int8_tensor int8_group int8_row_reduced int8_tensor_reduced intx int4_int32 gguf_proto "
         "int8_row_v1 int8_group_v1",
         "", "torchao 0.18.0, choose_qparams_affine"},
        {"scale_in_double", "double, then float32", "tinyq_w8a32", "",
         "TinyQ 006b7b9, get_q_scale_symmetric: Python floats"},
        {"scale_float32_rounded", "float32, then rounded to the weight's", "tinyq_w8a16 int4_plain",
         "torchao 0.15 Int8Tensor", "TinyQ 006b7b9, W8A16LinearLayer.quantize"}}},
      {"element_nan",
       "what does NaN become in an element type that has none",
       false,
       {{"floatx_nan_bits", "the low bits that the integer arithmetic of a normal number leaves", "mx", "",
         "torchao 0.18.0, prototype/custom_fp_utils.py, _f32_to_floatx_unpacked"}}},
      {"non_finite_block",
       "what are the scale and the codes of a block with NaN or an infinity",
       false,
       {{"mx_infinite_block_scaled",
         "an infinity counts as 2^128; next to NaN the scale is NaN and the codes are those of x / infinity",
         kMxByExponent, "",
         "torchao 0.18.0, mx_tensor.py, to_mx: the exponent field of max |x|; byte 255 << 23"},
        {"mx_non_finite_any", "whatever the implementation makes of it", "",
         "profiles ocp_mx_1_0, nvidia_rceil",
         "OCP Microscaling Formats 1.0, 6.3; TransformerEngine leaves it to do in float_to_e8m0"}}},
      {"rceil_exponent",
       "where does RCEIL take its exponent from",
       false,
       {{"mx_rceil_log2", "the ceiling of a float32 logarithm",
         "mxfp8_e4m3_rceil mxfp8_e5m2_rceil mxfp6_e2m3_rceil mxfp6_e3m2_rceil mxfp4_rceil", "",
         "torchao 0.18.0, mx_tensor.py, _to_mx_rceil, its two branches"},
        {"mx_rceil_bits", "the bits of max|w| * (1 / largest element) in float32, rounded up", "",
         "TransformerEngine; cvt.rp.satfinite.ue8m0x2; profile nvidia_rceil",
         "TransformerEngine, common/util/ptx.cuh, float_to_e8m0 and exp2f_rcp; by source, not run here"}}},
      {"least_block_scale",
       "what divides a block whose scale byte is 0, or whose scale would be subnormal",
       false,
       {{"mx_rceil_zero_unscaled", "by 1, and decoded by 2^-127",
         "mxfp8_e4m3_rceil mxfp8_e5m2_rceil mxfp6_e2m3_rceil mxfp6_e3m2_rceil mxfp4_rceil", "",
         "torchao 0.18.0, mx_tensor.py, _to_mx_rceil"},
        {"mx_scale_floor_normal", "by 2^-126, and decoded by 2^-127", kMxByExponent, "",
         "torchao 0.18.0, mx_tensor.py, to_mx: clamp(min=F32_MIN_NORMAL)"},
        {"mx_scale_exact", "by 2^-127, as it is decoded", "",
         "OCP Microscaling Formats 1.0; microxcaling; profile ocp_mx_1_0",
         "OCP Microscaling Formats 1.0, 6.3: every element is divided by the shared scale"},
        {"nvfp4_scale_floor", "by 2^-6, the smallest normal of e4m3", "nvfp4", "",
         "torchao 0.18.0, nvfp4_tensor.py, nvfp4_quantize; compressed-tensors has no floor"}}},
      {"nvfp4_division",
       "is an element divided by its scales, or multiplied by their reciprocal",
       false,
       {{"nvfp4_reciprocal_multiply", "x * (1 / scale); at two levels x * ((1 / tensor scale) / scale)",
         "nvfp4", "", "torchao 0.18.0, nvfp4_tensor.py, nvfp4_quantize"}}},
      {"nvfp4_zero_tensor",
       "what are the two levels of scales of a tensor of zeros",
       false,
       {{"nvfp4_zero_tensor_nan", "NaN, from 0 / 0", "nvfp4_two_level", "",
         "torchao 0.18.0, nvfp4_tensor.py, nvfp4_quantize"}}},
      {"nf4_pair_order",
       "which element of an NF4 pair is in the high nibble",
       false,
       {{"nf4_even_high", "the even one", "nf4", "bitsandbytes",
         "torchao 0.18.0, nf4_tensor.py, convert_to_norm_float_weight"}}},
      {"nf4_table",
       "how many digits do the sixteen values of NF4 have",
       false,
       {{"nf4_table_rounded", "four decimals, then the weight's dtype", "nf4", "",
         "torchao 0.18.0, nf4_tensor.py, from_tensor; bitsandbytes has all digits"}}},
      {"nf4_zero",
       "what is a block of zeros in NF4",
       false,
       {{"nf4_zero_block", "code 0, which means -1, under a scaler near 0", "nf4", "",
         "torchao 0.18.0, nf4_tensor.py, quantize_tensor_nearest"}}},
      {"nf4_scaler_mean",
       "in which order is the mean of the scalers summed",
       true,
       {{"nf4_mean_order", "the library's own, in float32", "nf4", "",
         "torchao 0.18.0, nf4_tensor.py, double_quantize_scalers"}}},
      {"bnb_fp4_zero",
       "what does code 8 of bitsandbytes' fp4 mean",
       false,
       {{"bnb_fp4_negative_zero", "-0; 0 in rows of odd length", "",
         "bitsandbytes on a CPU without AVX-512; qcts reads files this way",
         "bitsandbytes 0.50.2, cdequantize_blockwise_cpu_fp4_*; goldens bitsandbytes_0_50_2/fp4*"},
        {"bnb_fp4_positive_zero", "0, as quant_map has it", "",
         "bitsandbytes with AVX-512 where the columns are a multiple of 16 or a block has 2048; its torch "
         "code",
         "bitsandbytes 0.50.2, backends/default/ops.py, _dequantize_4bit_compute; the kernel, run"}}},
      {"mlx_affine_rounding",
       "where does MLX round code * scale + bias",
       false,
       {{"mlx_two_roundings", "after the product and after the sum, to the dtype of the scales", "",
         "MLX on a CPU; qcts reads files this way",
         "mlx 0.32.4, mx.dequantize, run; goldens mlx_0_32_4/affine_*"},
        {"mlx_one_rounding", "once, in float32", "",
         "transformers' MetalConfig, which does not read MLX's files",
         "transformers 5.24.0, integrations/metal_quantization.py, _affine_dequantize_tensor"}}},
      {"bnb_absmax_place",
       "which absmax belongs to row r, column c of k if blocks end inside a row",
       false,
       {{"bnb_absmax_of_element", "(r * k + c) / block", "",
         "bitsandbytes' quantizer, its torch code and its CPU code without AVX-512; qcts reads files this "
         "way",
         "bitsandbytes 0.50.2, backends/cpu/ops.py, dequantize_4bit; goldens bitsandbytes_0_50_2/nf4*"},
        {"bnb_absmax_of_row", "r * (k / block) + c / block, which is another one", "",
         "bitsandbytes with AVX-512 where k is a multiple of 16: most weights of 13 x 80 with blocks of 64 "
         "differ",
         "bitsandbytes 0.50.2, its CPU kernel, run"}}},
  };
}

constexpr std::array<StaleClaim, 3> kClaims = {{
    {"claim_no_torchao_needed",
     "load_state_dict(assign=True) of a quantized state dict: \"No dependency on torchao is needed\"",
     "torchao's documentation, serialization",
     "torch.load(weights_only=True) of torch 2.13.0 refuses every file with a torchao class until torchao is "
     "imported",
     "fixtures/readers.json: reader torch 2.13.0 alone"},
    {"claim_transformers_no_safetensors",
     "torchao \"only work with huggingface non-safetensor serialization\"; "
     "save_pretrained(safe_serialization=False)",
     "transformers' documentation, TorchAO",
     "transformers 5.23.0 writes safetensors and ignores safe_serialization=False",
     "goldens transformers_5_23_0/*"},
    {"claim_w8a16_is_lossless_enough", "W8A16 keeps 16-bit activations with int8 weights for bfloat16 models",
     "TinyQ's tutorial, quantization methods",
     "in bfloat16 the unclamped code 128 wraps: 14 dB of SQNR where float16 has 45",
     "golden tinyq_006b7b9/w8a16/toy_bfloat16"},
}};

constexpr std::string_view kNoMap =
    "no index map is published: the compressed layout is cuSPARSELt's own and may change with its version; "
    "what PyTorch "
    "found out of it (ATen's MetadataCuSparseLt) is for 16-bit elements";
constexpr std::string_view kNoMapEvidence =
    "NVIDIA/CUDALibrarySamples issues 167 and 95; a CPU has no aten::_cslt_compress (torch 2.13.0, run)";
constexpr std::string_view kTwoMaps =
    "two index maps of its metadata are published, and differ: blocks of 128 x 64 one below the other, and "
    "strips of 64 rows; a file does not tell for which card it was compressed";
constexpr std::string_view kTwoMapsEvidence =
    "ATen's MetadataCuSparseLt (aten/src/ATen/native/sparse/cuda/SparseSemiStructuredTile.cu), torchao's "
    "MetadataCusparseLt16bits (torchao/csrc/cuda/sparse24_sm90)";
constexpr std::array<KeptLayout, 2> kKept = {
    {{"SemiSparseLayout", "int8 weights, 2:4 sparse, below LinearActivationQuantizedTensor",
      "torchao 0.5.0 to 0.16.0 on a GPU (int8 dynamic activations)", kNoMap, kNoMapEvidence},
     {"SparseSemiStructuredTensorCUSPARSELT", "16-bit and 8-bit weights, 2:4 sparse, not quantized",
      "torch's to_sparse_semi_structured, torchao's SemiSparseWeightConfig on a GPU with cuSPARSELt",
      kTwoMaps, kTwoMapsEvidence}}};

}  // namespace

std::span<const ChoiceEntry> choice_ledger() {
  static const std::vector<ChoiceEntry> ledger = make_ledger();
  return ledger;
}

std::vector<const ChoiceOption*> choices_of(std::string_view scheme, std::string_view family) {
  std::vector<const ChoiceOption*> found;
  for (const ChoiceEntry& entry : choice_ledger())
    for (const ChoiceOption& option : entry.options)
      if (names(option.schemes, scheme) || names(option.schemes, family)) found.push_back(&option);
  return found;
}

std::span<const StaleClaim> stale_claims() { return kClaims; }

std::span<const KeptLayout> kept_layouts() { return kKept; }

}  // namespace qcts
