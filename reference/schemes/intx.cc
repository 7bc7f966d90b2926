// SPDX-License-Identifier: BSD-3-Clause
// intx_b1 .. intx_b8, with groups of 32, 64, 128, 256 along k or one scale per row ("_axis"), and a mapping:
// torchao 0.18.0 IntxWeightOnlyConfig and Int8DynamicActivationIntxWeightConfig (8da4w),
// IntxUnpackedToInt8Tensor.from_hp
// (torchao/quantization/quantize_/workflows/intx/intx_unpacked_to_int8_tensor.py) with
// IntxChooseQParamsAlgorithm.AFFINE. Codes of b bits take one byte each; scales have the weight's dtype, in
// which everything is computed; zero points are int8. "_s32": scale_dtype=torch.float32 for a narrower
// weight; scales are chosen as before, then codes and meaning use their float32 copies
// (_adjust_scale_dtype_in_intx_unpacked_tensor of quantization/quant_api.py).
// Meaning: (q - zero_point) * scale in the common type of the weight's dtype and the scale's, then in the
// weight's (IntxUnpackedToInt8Tensor.dequantize); in float32 the product of 16-bit scales is exact.
// Activations of 8da4w: int8, asymmetric, per row of x, in x's dtype including the scale
// (_apply_int8_act_asym_per_token_quant_dequant). kFirstGeneration lists more, of torchao's first generation:
// "_s32" has float32 scales, and codes computed with them in float32; the others use x's dtype.
#include <algorithm>

#include "reference/numerics/affine.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr ActivationInfo kIntxOwn[] = {
    {kWeightOnly.name(), "x enters the sum as it is"},
    {"dyn_token_asym",
     "torchao 0.18.0 Int8DynamicActivationIntxWeightConfig: _apply_int8_act_asym_per_token_quant_dequant"}};

// An activation function of quant_api.py.
struct FirstGeneration {
  ActivationInfo policy;
  Mapping mapping;
  int code_min, code_max;
  double min_scale;  // 0: torch.finfo(x.dtype).eps
  bool wide;         // float32 scales for any x
  bool for_cutlass;  // for CutlassInt4PackedLayout: 4-bit weights with a scale per row
};
constexpr FirstGeneration kFirstGenerationPolicies[] = {
    {{"dyn_token_asym_s32", "torchao 0.12.0 to 0.17.0 quant_api.py _int8_asymm_per_token_quant"},
     Mapping::asymmetric,
     -128,
     127,
     0x1p-23,
     true,
     false},
    {{"dyn_token_asym_eps", "torchao 0.5.0, 0.6.1 quant_api.py _int8_asymm_per_token_quant"},
     Mapping::asymmetric,
     -128,
     127,
     0,
     false,
     false},
    {{"dyn_token_sym_127_s32", "torchao 0.7.0 to 0.17.0 quant_api.py _int8_symm_per_token_quant"},
     Mapping::symmetric,
     -127,
     127,
     1e-5,
     true,
     false},
    {{"dyn_token_asym_u8_s32", "torchao 0.12.0 to 0.17.0 quant_api.py _uint8_asymm_per_token_quant"},
     Mapping::asymmetric,
     0,
     255,
     0x1p-23,
     true,
     false},
    {{"dyn_token_sym_s32", "torchao 0.10.0 to 0.15.0 quant_api.py _int8_symm_cutlass_quant"},
     Mapping::symmetric,
     -128,
     127,
     0x1p-23,
     true,
     true},
    {{"dyn_token_sym_b4_s32", "torchao 0.10.0 to 0.15.0 quant_api.py _int4_symm_cutlass_quant"},
     Mapping::symmetric,
     -8,
     7,
     0x1p-23,
     true,
     true},
    {{"dyn_token_sym_127", "torchao 0.9.0 quant_api.py _int8_symm_per_token_reduced_range_quant_cutlass"},
     Mapping::symmetric,
     -127,
     127,
     1e-5,
     false,
     true},
    {{"dyn_token_sym_b4", "torchao 0.9.0 quant_api.py _int4_symm_per_token_quant_cutlass"},
     Mapping::symmetric,
     -8,
     7,
     1e-5,
     false,
     true}};

// choose_qparams_affine without eps: torch.finfo(input.dtype).smallest_normal.
AffineRecipe recipe_of(DType dtype, DType scale, Mapping mapping, int bits) {
  return {.mapping = mapping,
          .code_min = -(1 << (bits - 1)),
          .code_max = (1 << (bits - 1)) - 1,
          .min_scale = float_format(dtype).min_normal,
          .input = dtype,
          .scale = scale};
}

AffineRecipe activation_recipe(DType x, Policy activation) {
  for (const FirstGeneration& first : kFirstGenerationPolicies)
    if (first.policy.name == activation)
      return {.mapping = first.mapping,
              .code_min = first.code_min,
              .code_max = first.code_max,
              .min_scale = first.min_scale > 0 ? first.min_scale : 2 * float_format(x).unit_roundoff,
              .input = x,
              .scale = first.wide ? DType::float32 : x};
  return recipe_of(x, x, Mapping::asymmetric, 8);
}

// Returns the type of codes and zero points: int8, or uint8 where no code is negative.
DType integer_of(const AffineRecipe& recipe) { return recipe.code_min < 0 ? DType::int8 : DType::uint8; }

int integer_at(const Plane& integers, int64_t index) {
  const std::byte byte = integers.bytes[index];
  return integers.dtype == DType::int8 ? static_cast<int8_t>(byte) : std::to_integer<int>(byte);
}

AffineParameters parameters_at(const Planes& planes, DType dtype, int64_t index) {
  return {static_cast<float>(load_float(dtype, plane(planes, "scale").bytes, index)),
          integer_at(plane(planes, "zero_point"), index)};
}

std::vector<PlaneSpec> specs_of(const AffineRecipe& recipe, int64_t rows, int64_t cols, int64_t group) {
  return {{"qdata", integer_of(recipe), {rows, cols}},
          {"scale", recipe.scale, {rows, cols / group}},
          {"zero_point", integer_of(recipe), {rows, cols / group}}};
}

Planes quantize_groups(const Matrix& values, int64_t group, const AffineRecipe& recipe) {
  Planes planes = make_planes(specs_of(recipe, values.rows, values.cols, group));
  const std::vector<float> w = load_floats(values.dtype, values.bytes);
  for (int64_t b = 0; b < values.rows * values.cols / group; ++b) {
    const std::span<const float> elements(w.data() + b * group, static_cast<size_t>(group));
    const AffineParameters chosen = choose_affine(recipe, elements);
    store_float(recipe.scale, planes[1].bytes, b, chosen.scale);
    planes[2].bytes[b] = static_cast<std::byte>(chosen.zero_point);
    const AffineQuantizer code_of(recipe, chosen);
    for (int64_t i = 0; i < group; ++i)
      planes[0].bytes[b * group + i] = static_cast<std::byte>(code_of(elements[static_cast<size_t>(i)]));
  }
  return planes;
}

// Returns the meaning, "intx_b4_g32" or "intx_b4_axis_s32": without the mapping, which files do not record.
std::string meaning_of(int bits, int64_t group, bool wide) {
  return "intx_b" + std::to_string(bits) + (group ? "_g" + std::to_string(group) : "_axis") +
         (wide ? "_s32" : "");
}

std::string summary_of(int bits, int64_t group, Mapping mapping, bool wide) {
  constexpr std::string_view kWords[] = {"symmetric", "symmetric without clipping", "asymmetric"};
  return std::to_string(bits) + "-bit codes, one per byte, " + (wide ? "float32 " : "") +
         "scale and zero point per " + (group ? std::to_string(group) + " elements along k" : "row") + ", " +
         std::string(kWords[static_cast<int>(mapping)]);
}

constexpr std::string_view kMappings[] = {"_sym", "_symnc", "_asym"};

class Intx final : public Scheme {
 public:
  Intx(int bits, int64_t group, Mapping mapping, bool wide)
      : Scheme({.name = meaning_of(bits, group, wide) + std::string(kMappings[static_cast<int>(mapping)]),
                .family = "intx",
                .summary = summary_of(bits, group, mapping, wide),
                .source = "torchao 0.18.0 IntxWeightOnlyConfig: IntxUnpackedToInt8Tensor.from_hp, "
                          "choose_qparams_affine, quantize_affine",
                .group = group,
                .params = {.bits = bits,
                           .code_min = -(1 << (bits - 1)),
                           .code_max = (1 << (bits - 1)) - 1,
                           .scale = wide ? std::optional(DType::float32) : std::nullopt,
                           .zero_point = ZeroPointKind::integer,
                           .mapping = mapping},
                .meaning = meaning_of(bits, group, wide),
                .layouts = {{"plain",
                             "torchao 0.18.0 intx_unpacked_to_int8_tensor.py IntxUnpackedToInt8Tensor"}}}),
        bits_(bits),
        mapping_(mapping),
        wide_(wide) {
    activations_.assign(std::begin(kIntxOwn), std::end(kIntxOwn));
    for (const FirstGeneration& first : kFirstGenerationPolicies)
      if (can_be_below(first)) activations_.push_back(first.policy);
  }

  std::span<const ActivationInfo> activations() const override { return activations_; }

  std::unique_ptr<Scheme> with_group(int64_t length) const override {
    return std::make_unique<Intx>(bits_, length, mapping_, wide_);
  }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout)) return why_not;
    if (wide_ && shape.dtype == DType::float32)
      return std::string(name()) + " is for weights narrower than its scales";
    return refused_size(shape, group());
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout) const override {
    return specs_of(weight_recipe(shape.dtype), shape.n, shape.k, length(shape.k));
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    return quantize_groups(weight, length(weight.cols), weight_recipe(weight.dtype));
  }

  Written written(const WeightShape& shape, Layout, Magnitudes of) const override {
    return written_affine(weight_recipe(shape.dtype), of, source());
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    return (row * shape.k + k) / (plane == "qdata" ? 1 : length(shape.k));
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const std::vector<std::byte>& qdata = plane(plain, "qdata").bytes;
    AffineParameters at;
    for (int64_t k = 0; k < shape.k; ++k) {
      const int64_t element = row * shape.k + k;
      if (k % length(shape.k) == 0)
        at = parameters_at(plain, scale_dtype(shape.dtype), element / length(shape.k));
      const double code = static_cast<int8_t>(qdata[element]) - at.zero_point;
      out[k] = {.product = code * at.scale, .zero = 0, .code = code, .scale = at.scale};
    }
  }

  std::vector<PlaneSpec> activation_specs(const Matrix& x, Policy activation) const override {
    require_policy(activation);
    return specs_of(activation_recipe(x.dtype, activation), x.rows, x.cols, x.cols);
  }
  Planes quantize_activation(const Matrix& x, Policy activation, const Planes&) const override {
    require_policy(activation);
    return quantize_groups(x, x.cols, activation_recipe(x.dtype, activation));
  }
  void exact_activation(const Planes& quantized, const Matrix& x, Policy activation, int64_t row,
                        std::span<double> out) const override {
    require_planes(quantized, activation_specs(x, activation));
    const Plane& qdata = plane(quantized, "qdata");
    const AffineParameters at = parameters_at(quantized, activation_recipe(x.dtype, activation).scale, row);
    for (int64_t k = 0; k < x.cols; ++k)
      out[k] = (integer_at(qdata, row * x.cols + k) - at.zero_point) * static_cast<double>(at.scale);
  }

  // torchao 0.18.0 on torch 2.13.0, CPU: intx_unpacked_to_int8_tensor.py, linear. Under a policy x is
  // quantized and dequantized in its own dtype; the weight is dequantized in its own; then linear, which is
  // addmm: the result starts from the bias before gemm adds to it (aten/src/ATen/native/LinearAlgebra.cpp,
  // addmm_impl_cpu_), so there is one rounding. CUTLASS's kernels (recorded with exact sums instead): int32
  // sums, times both scales in float32.
  LinearStages recorded_stages(const WeightShape&, Policy activation, DType y) const override {
    const bool for_cutlass = std::ranges::any_of(kFirstGenerationPolicies, [&](const FirstGeneration& first) {
      return first.for_cutlass && first.policy.name == activation;
    });
    if (for_cutlass) return {.accumulator = DType::int32, .scale_after_sum = true};
    LinearStages stages{.weight_cast = y, .product_cast = DType::float32};
    if (activation != kWeightOnly) stages.x_cast = y;
    return stages;
  }

  CodeSet codes() const override { return integer_codes(bits_, true); }

  std::string place(const WeightShape& shape, Layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    int64_t at = static_cast<int64_t>(byte_offset);
    if (plane_name == "qdata") return named_indices("row", "k", at, shape.k);
    if (plane_name == "scale") at /= dtype_bytes(scale_dtype(shape.dtype));
    return group() ? named_indices("row", "group", at, shape.k / group()) : "row " + std::to_string(at);
  }

 private:
  // First generation: scales have the weight's dtype, except CUTLASS's, which are float32 since 0.10; its
  // files do not distinguish symnc from sym.
  bool can_be_below(const FirstGeneration& first) const {
    if (mapping_ == Mapping::symmetric_no_clipping) return false;
    if (first.for_cutlass)
      return bits_ == 4 && group() == 0 && mapping_ == Mapping::symmetric && (first.wide || !wide_);
    return !wide_;
  }
  AffineRecipe weight_recipe(DType weight) const {
    return recipe_of(weight, scale_dtype(weight), mapping_, bits_);
  }
  DType scale_dtype(DType weight) const { return wide_ ? DType::float32 : weight; }
  int64_t length(int64_t k) const { return group() ? group() : k; }

  int bits_;
  Mapping mapping_;
  bool wide_;
  std::vector<ActivationInfo> activations_;
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_intx() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (const bool wide : {false, true})
    for (int bits = 1; bits <= 8; ++bits)
      for (const int64_t group : {0, 32, 64, 128, 256})
        for (const Mapping mapping :
             {Mapping::symmetric, Mapping::symmetric_no_clipping, Mapping::asymmetric})
          all.push_back(std::make_unique<Intx>(bits, group, mapping, wide));
  return all;
}

}  // namespace qcts
