#include "reference/choices.h"

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

std::vector<ChoiceEntry> make_ledger() {
  return {
      {"int8_range",
       "by what is max|w| divided for the scale of symmetric int8 weights",
       false,
       {{"int8_range_127_5", "127.5", "int8_row", "compressed-tensors 0.20.0",
         "torchao 0.18.0, quant_primitives.py, _choose_qparams_affine: (quant_max - quant_min) / 2"},
        {"tinyq_127", "127", "tinyq", "bitsandbytes, GGML Q8_0, torchao's int8 training",
         "TinyQ 006b7b9, utils.py, get_q_scale_symmetric; 9 codes in 100 differ from 127.5's"}}},
      {"int8_division",
       "is the weight divided by the scale, or multiplied by its reciprocal",
       false,
       {{"int8_reciprocal_multiply", "round(w * (1 / scale))", "int8_row", "",
         "torchao 0.18.0, quant_primitives.py, quantize_affine; 1 code in 10,000 differs"},
        {"tinyq_divide", "round(w / scale)", "tinyq", "compressed-tensors 0.20.0",
         "TinyQ 006b7b9, utils.py, linear_q_with_scale_and_zero_point"}}},
      {"rounding_half",
       "where does a value halfway between two codes go",
       false,
       {{"half_even", "to the even code", "int8_row int4_tinygemm fp8_row tinyq", "",
         "torch.round, torch 2.13; the halfway goldens"},
        {"half_away", "away from zero", "", "GGML (roundf)", "ggml-quants.c, quantize_row_q8_0_ref"}}},
      {"clamp",
       "are codes clamped to the range, and when",
       false,
       {{"clamp_after_round", "after rounding", "int8_row int4_tinygemm tinyq_w8a32", "",
         "torchao 0.18.0, quantize_affine; TinyQ 006b7b9, linear_q_with_scale_and_zero_point"},
        {"clamp_before_round", "before rounding", "fp8_row", "compressed-tensors 0.20.0",
         "torchao 0.18.0, _quantize_affine_float8: clamp, then the cast rounds"},
        {"tinyq_w8a16_no_clamp", "never: 128 wraps to -128", "tinyq_w8a16", "",
         "TinyQ 006b7b9, tinyq.py, W8A16LinearLayer.quantize; golden tinyq_006b7b9/w8a16/toy_bfloat16"}}},
      {"zero_row",
       "what is the scale of a row or group of zeros",
       false,
       {{"int8_floor_2_23", "2^-23, the epsilon of float32, in every dtype", "int8_row", "",
         "torchao 0.18.0, int8_tensor.py, from_hp"},
        {"int4_eps_1e_6", "at least 1e-6, rounded to the dtype", "int4_tinygemm", "",
         "torchao 0.18.0, int4_opaque_tensor.py, from_hp; torchao 0.13.0, quant_api.py"},
        {"int4_eps_smallest_normal", "at least the smallest normal of the dtype (tile_packed_4d)", "",
         "torchao", "torchao 0.18.0, int4_tile_packed_to_4d_tensor.py, from_hp: no eps is passed"},
        {"fp8_zero_row_nan", "0, and the codes are NaN", "fp8_row", "",
         "torchao 0.18.0, quant_primitives.py, _choose_scale_float8"},
        {"fp8_floor_1_512", "the row's maximum is at least 1/512", "",
         "torchao's kernels on H100 (MSLK, FBGEMM)", "fbgemm_gpu quantize_fp8_row; by source, not run here"},
        {"tinyq_zero_row", "0, and the codes are the int8 of NaN, which is 0 on x86", "tinyq", "",
         "goldens tinyq_006b7b9/*/zero_row"}}},
      {"nan_to_int8",
       "what integer does NaN become",
       true,
       {{"nan_code_zero",
         "0: float32 to int8 goes by way of int32, whose indefinite value ends in a zero byte",
         "int8_row tinyq", "", "torch 2.13.0 on x86-64; undefined in C++"}}},
      {"int4_multiply_add",
       "is code * scale + zero rounded once or twice",
       false,
       {{"int4_fma_once", "once: round(fma(code - 8, scale, zero))", "int4_tinygemm", "",
         "torch 2.13.0, int4mm_kernel.cpp; one-hot rows through it"},
        {"int4_dequant_two_roundings", "twice, each in the dtype: 3.6 values in 100 differ", "",
         "torchao's Python dequantizer; PlainLayout of 0.5 to 0.7",
         "torchao 0.13.0, quant_primitives.py, _dequantize_affine_float_zero_point"}}},
      {"int4_nibble_order",
       "which nibble of a byte holds the even column",
       false,
       {{"nibble_even_low", "the low one", "",
         "torchao Int4Tensor, CutlassInt4PackedLayout; compressed-tensors",
         "torchao 0.9.0, cutlass_int4_packed_layout.py, get_plain"},
        {"nibble_even_high", "the high one", "int4_tinygemm", "bitsandbytes",
         "torch 2.13.0, _convert_weight_to_int4pack takes even << 4 | odd"}}},
      {"int8_sum_order",
       "does the scale act before the sum or on the finished row",
       true,
       {{"scale_after_sum", "on the sum: linear(x, q) * s", "int8_row tinyq_w8a16", "",
         "torchao 0.18.0, int8_tensor.py; TinyQ 006b7b9, w8_a16_forward"},
        {"scale_before_sum", "on the weight: linear(x, q * s)", "tinyq_w8a32 fp8_row int4_tinygemm", "",
         "TinyQ 006b7b9, w8_a32_forward; torchao 0.18.0, float8_tensor.py"}}},
      {"zero_point_stored",
       "is a zero point stored where it is always zero, and in which type",
       false,
       {{"zero_point_int8", "int8", "int8_row", "", "torchao 0.18.0, Int8Tensor"},
        {"zero_point_int64", "int64: eight bytes a row", "",
         "torchao 0.5 to 0.17, AffineQuantizedTensor of int8wo", "goldens torchao_*/int8wo"},
        {"zero_point_none", "none", "fp8_row tinyq_w8a16", "torchao 0.9 to 0.17, int8 dynamic",
         "goldens torchao_0_9_0/int8dq"},
        {"tinyq_zero_points_unread", "int32, and forward never reads them", "tinyq_w8a32", "",
         "TinyQ 006b7b9, tinyq.py, W8A32LinearLayer.forward passes z_w=0"}}},
      {"division_of_the_scale",
       "in which type is the scale formed",
       false,
       {{"scale_in_weight_dtype", "the weight's own, then widened", "int8_row", "",
         "torchao 0.18.0, choose_qparams_affine"},
        {"scale_in_double", "double, then float32", "tinyq_w8a32", "",
         "TinyQ 006b7b9, get_q_scale_symmetric: Python floats"},
        {"scale_float32_rounded", "float32, then rounded to the weight's", "tinyq_w8a16",
         "torchao 0.15 Int8Tensor", "TinyQ 006b7b9, W8A16LinearLayer.quantize"}}},
  };
}

constexpr std::array<StaleClaim, 3> kClaims = {{
    {"claim_no_torchao_needed",
     "load_state_dict(assign=True) of a quantized state dict: \"No dependency on torchao is needed\"",
     "torchao's documentation, serialization",
     "torch.load(weights_only=True) of torch 2.13.0 refuses every file with a torchao class until torchao is "
     "imported",
     "fixtures/readers.json: reader torch without torchao"},
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

const ChoiceEntry* find_choice(std::string_view option_id) {
  for (const ChoiceEntry& entry : choice_ledger())
    for (const ChoiceOption& option : entry.options)
      if (option.id == option_id) return &entry;
  return nullptr;
}

std::span<const StaleClaim> stale_claims() { return kClaims; }

}  // namespace qcts
