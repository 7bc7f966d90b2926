// SPDX-License-Identifier: BSD-3-Clause
// int8_row, int8_tensor, int8_g32, _g64, _g128: torchao 0.18.0 Int8Tensor.from_hp
// (torchao/quantization/quantize_/workflows/int8/int8_tensor.py) as Int8WeightOnlyConfig(version=2) calls it
// with PerRow(), PerTensor() and PerGroup(g). Symmetric, float32 scales, and zero points that are always 0
// and always stored. int8_row_reduced, int8_tensor_reduced: the same with reduce_range=True, codes -64 .. 63,
// which Int8DynamicActivationInt8WeightConfig and Int8StaticActivationInt8WeightConfig offer for processors
// whose int8 dot products saturate. Meaning: (q - zero_point) * scale in float32, then the cast to the
// logical dtype (Int8Tensor.dequantize). int8_row_v1, int8_g32_v1, _g64_v1, _g128_v1: torchao 0.5.0 to 0.17.0
// AffineQuantizedTensor.from_hp_to_intx (torchao/dtypes/affine_quantized_tensor.py) as int8_weight_only and
// int8_dynamic_activation_int8_weight call it (Int8WeightOnlyConfig(version=1)). Scales are rounded to the
// weight's dtype first, so the reciprocal and its product with the weight are too: for bfloat16 weights, one
// code in seven differs from int8_row's. The planes mean the same as int8_row's; the files store the scales
// in the weight's dtype, and zero points as int64 or not at all.
//
// Activations, for scales of rows and of the tensor: the same function on x, per row or for all of x,
// symmetric or asymmetric, in the weight's range. "static" uses the checkpoint's scale and zero point ("_zp":
// a zero point stored even by a symmetric observer). "pre_" first multiplies by act_pre_scale, rounded to x's
// dtype, as SmoothQuant and AWQ store it. "dyn_row_sym_127" of int8_row and int8_row_v1 is torchao's first
// generation: codes -127 .. 127, scales of at least 1e-5 in x's dtype, float32 for float16.
#include <array>

#include "reference/numerics/affine.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/pre_scale.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

// from_hp: eps = torch.finfo(torch.float32).eps = 2^-23, for every input dtype; exact in float16 (as a
// subnormal) and bfloat16.
constexpr double kInt8MinScale = 0x1p-23;

constexpr std::string_view kDynamic =
    "torchao 0.18.0 Int8DynamicActivationInt8WeightConfig: Int8Tensor.from_hp of x";
constexpr std::string_view kInt8Static =
    "torchao 0.18.0 Int8StaticActivationInt8WeightConfig: Int8Tensor.from_hp of x with a given scale";
constexpr std::string_view kScaled =
    "torchao 0.18.0 int8_tensor.py linear with act_pre_scale (prototype/smoothquant, prototype/awq)";
constexpr std::string_view kFirstGeneration = "dyn_row_sym_127";
constexpr double kFirstMinScale = 1e-5;
constexpr std::string_view kFirstSymmetric =
    "torchao 0.5.0 to 0.17.0 quant_api.py _int8_symm_per_token_reduced_range_quant";
// Every second policy is its neighbour after act_pre_scale; scales of groups have only the first two, and
// only int8_row has the last.
constexpr std::array<ActivationInfo, 17> kInt8Activations = {
    {{kWeightOnly.name(), "x enters the sum as it is"},
     {"pre_weight_only", kScaled},
     {"dyn_row_sym", kDynamic},
     {"pre_dyn_row_sym", kScaled},
     {"dyn_row_asym", kDynamic},
     {"pre_dyn_row_asym", kScaled},
     {"dyn_tensor_sym", kDynamic},
     {"pre_dyn_tensor_sym", kScaled},
     {"dyn_tensor_asym", kDynamic},
     {"pre_dyn_tensor_asym", kScaled},
     {"static_tensor_sym", kInt8Static},
     {"pre_static_tensor_sym", kScaled},
     {"static_tensor_sym_zp", kInt8Static},
     {"pre_static_tensor_sym_zp", kScaled},
     {"static_tensor_asym", kInt8Static},
     {"pre_static_tensor_asym", kScaled},
     {kFirstGeneration, kFirstSymmetric}}};
// int8_row_v1; scales of groups have only the first.
constexpr std::array<ActivationInfo, 3> kFirstActivations = {
    {{kWeightOnly.name(), "x enters the sum as it is"},
     {kFirstGeneration, kFirstSymmetric},
     {"dyn_row_asym", "torchao 0.11.0 to 0.17.0 quant_api.py _int8_asymm_per_token_quant"}}};

bool is_static(Policy activation) { return without_pre_scale(activation).starts_with("static_"); }
bool is_asymmetric(Policy activation) { return activation.name().ends_with("_asym"); }
bool has_zero_point(Policy activation) {
  return is_static(activation) && (is_asymmetric(activation) || activation.name().ends_with("_zp"));
}

// The elements that share a scale.
struct Block {
  int64_t rows = 1, cols = 1;
};

// The ways in which torchao chooses int8 codes.
enum class Recipe : uint8_t { current, reduced_range, first };

AffineRecipe recipe_of(DType input, bool reduced, bool asymmetric) {
  return {.mapping = asymmetric ? Mapping::asymmetric : Mapping::symmetric,
          .code_min = reduced ? -64 : -128,
          .code_max = reduced ? 63 : 127,
          .min_scale = kInt8MinScale,
          .input = input,
          .scale = DType::float32};
}

AffineRecipe activation_recipe(DType x, bool reduced, Policy activation) {
  if (activation != kFirstGeneration) return recipe_of(x, reduced, is_asymmetric(activation));
  return {.mapping = Mapping::symmetric,
          .code_min = -127,
          .code_max = 127,
          .min_scale = kFirstMinScale,
          .input = x,
          .scale = x == DType::float16 ? DType::float32 : x};
}

std::vector<PlaneSpec> specs_of(int64_t rows, int64_t cols, Block block) {
  const std::vector<int64_t> blocks = {rows / block.rows, cols / block.cols};
  return {{"qdata", DType::int8, {rows, cols}},
          {"scale", DType::float32, blocks},
          {"zero_point", DType::int8, blocks}};
}

AffineParameters parameters_at(const Planes& planes, int64_t index) {
  return {static_cast<float>(load_float(DType::float32, plane(planes, "scale").bytes, index)),
          static_cast<int8_t>(plane(planes, "zero_point").bytes[index])};
}

// Chooses the parameters of each block unless `given`, then quantizes.
Planes quantize_blocks(const Matrix& values, Block block, const AffineRecipe& recipe,
                       std::optional<AffineParameters> given = std::nullopt) {
  Planes planes = make_planes(specs_of(values.rows, values.cols, block));
  const std::vector<float> w = load_floats(values.dtype, values.bytes);
  const int64_t across = values.cols / block.cols;
  for (int64_t b = 0; b < values.rows / block.rows * across; ++b) {
    const int64_t row = b / across * block.rows, col = b % across * block.cols;
    std::vector<float> elements;
    for (int64_t r = row; r < row + block.rows; ++r)
      for (int64_t c = col; c < col + block.cols; ++c) elements.push_back(w[r * values.cols + c]);
    const AffineParameters chosen = given ? *given : choose_affine(recipe, elements);
    store_float(DType::float32, planes[1].bytes, b, chosen.scale);
    planes[2].bytes[b] = static_cast<std::byte>(chosen.zero_point);
    const AffineQuantizer code_of(recipe, chosen);
    for (int64_t i = 0; i < static_cast<int64_t>(elements.size()); ++i)
      planes[0].bytes[(row + i / block.cols) * values.cols + col + i % block.cols] =
          static_cast<std::byte>(code_of(elements[i]));
  }
  return planes;
}

struct Granularity {
  enum Kind : uint8_t { row, tensor, group } kind = row;
  int64_t size = 0;  // elements per group
};

std::string ending_of(Recipe recipe) {
  constexpr std::string_view kEndings[] = {"", "_reduced", "_v1"};
  return std::string(kEndings[static_cast<size_t>(recipe)]);
}

std::string family_of(Granularity granularity, Recipe recipe) {
  constexpr std::string_view kFamilies[] = {"int8_row", "int8_tensor", "int8_group"};
  return std::string(kFamilies[granularity.kind]) + ending_of(recipe);
}

// The name without the recipe: "int8_g32".
std::string meaning_of(Granularity granularity) {
  return granularity.size ? "int8_g" + std::to_string(granularity.size)
                          : family_of(granularity, Recipe::current);
}

std::string scales_of(Granularity granularity) {
  if (granularity.kind == Granularity::row) return "per row";
  return granularity.size ? "per group of " + std::to_string(granularity.size) : "for the tensor";
}

class Int8 final : public Scheme {
 public:
  Int8(Granularity granularity, Recipe recipe)
      : Scheme({.name = meaning_of(granularity) + ending_of(recipe),
                .family = family_of(granularity, recipe),
                .summary = summary_of(granularity, recipe),
                .source = recipe == Recipe::first
                              ? "torchao 0.5.0 to 0.17.0 AffineQuantizedTensor.from_hp_to_intx: "
                                "int8_weight_only, int8_dynamic_activation_int8_weight"
                              : "torchao 0.18.0 Int8WeightOnlyConfig(version=2): Int8Tensor.from_hp, "
                                "choose_qparams_affine, quantize_affine",
                .group = granularity.size,
                .params = {.code_min = recipe == Recipe::reduced_range ? -64 : -128,
                           .code_max = recipe == Recipe::reduced_range ? 63 : 127,
                           .group_rows = granularity.kind == Granularity::tensor ? 0 : 1,
                           .zero_point = ZeroPointKind::integer},
                .meaning = recipe == Recipe::first ? meaning_of(granularity) : "",
                .layouts = {{"plain", recipe == Recipe::first
                                          ? "torchao 0.9.0 plain_layout.py PlainAQTTensorImpl"
                                          : "torchao 0.18.0 int8_tensor.py Int8Tensor"}}}),
        granularity_(granularity),
        reduced_(recipe == Recipe::reduced_range),
        first_(recipe == Recipe::first) {}

  std::span<const ActivationInfo> activations() const override {
    if (first_) return std::span(kFirstActivations).first(granularity_.size ? 1 : kFirstActivations.size());
    const std::span<const ActivationInfo> all = kInt8Activations;
    if (granularity_.kind == Granularity::group) return all.first(2);
    return granularity_.kind == Granularity::row && !reduced_ ? all : all.first(all.size() - 1);
  }

  std::unique_ptr<Scheme> with_group(int64_t length) const override {
    return std::make_unique<Int8>(Granularity{Granularity::group, length},
                                  first_ ? Recipe::first : Recipe::current);
  }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout)) return why_not;
    return refused_size(shape, granularity_.size);
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout) const override {
    return specs_of(shape.n, shape.k, block(shape.n, shape.k));
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    return quantize_blocks(weight, block(weight.rows, weight.cols), weight_recipe(weight.dtype));
  }

  Written written(const WeightShape& shape, Layout, Magnitudes of) const override {
    return written_affine(weight_recipe(shape.dtype), of, source());
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    const int64_t element = row * shape.k + k;
    return plane == "qdata" ? element : block_of(shape, element);
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const std::vector<std::byte>& qdata = plane(plain, "qdata").bytes;
    AffineParameters at;
    for (int64_t k = 0, last = -1; k < shape.k; ++k) {
      const int64_t block = block_of(shape, row * shape.k + k);
      if (block != last) at = parameters_at(plain, block);
      last = block;
      const double code = static_cast<int8_t>(qdata[row * shape.k + k]) - at.zero_point;
      out[k] = {.product = code * at.scale, .zero = 0, .code = code, .scale = at.scale};
    }
  }

  std::vector<PlaneSpec> policy_specs(const WeightShape& shape, Policy activation) const override {
    std::vector<PlaneSpec> specs;
    if (is_static(activation)) specs.push_back({"act_quant_scale", DType::float32, {1, 1}});
    if (has_zero_point(activation)) specs.push_back({"act_quant_zero_point", DType::int8, {1, 1}});
    if (is_pre_scaled(activation)) specs.push_back(pre_scale_spec(shape));
    return specs;
  }

  // A calibration computes them as quantize_activation computes those of a dynamic policy.
  std::vector<WrittenRange> policy_ranges(const WeightShape& shape, Policy activation) const override {
    const WrittenCase of_x = written_affine(activation_recipe(shape.dtype, reduced_, activation),
                                            any_finite(shape.dtype), kInt8Static)
                                 .front();
    std::vector<WrittenRange> ranges;
    if (is_static(activation)) ranges.push_back({"act_quant_scale", of_x.ranges[1].values});
    if (has_zero_point(activation)) ranges.push_back({"act_quant_zero_point", of_x.ranges[2].values});
    if (is_pre_scaled(activation)) ranges.push_back(pre_scale_range(shape));
    return ranges;
  }

  std::vector<PlaneSpec> activation_specs(const Matrix& x, Policy activation) const override {
    require_policy(activation);
    if (without_pre_scale(activation) == kWeightOnly) return {{"x", x.dtype, {x.rows, x.cols}}};
    return specs_of(x.rows, x.cols, activation_block(x, activation));
  }

  Planes quantize_activation(const Matrix& x, Policy activation, const Planes& weight) const override {
    require_policy(activation);
    require_planes(weight, policy_specs({x.dtype, 1, x.cols}, activation));
    if (is_pre_scaled(activation)) {
      std::vector<std::byte> scaled = pre_scaled(x, weight);
      const Policy rest = policy_named(without_pre_scale(activation));
      if (rest == kWeightOnly) return {{"x", x.dtype, {x.rows, x.cols}, std::move(scaled)}};
      return quantize_activation({x.dtype, x.rows, x.cols, scaled}, rest, weight);
    }
    std::optional<AffineParameters> given;
    if (is_static(activation))
      given = {static_cast<float>(load_float(DType::float32, plane(weight, "act_quant_scale").bytes, 0)), 0};
    if (has_zero_point(activation))
      given->zero_point = static_cast<int8_t>(plane(weight, "act_quant_zero_point").bytes[0]);
    return quantize_blocks(x, activation_block(x, activation),
                           activation_recipe(x.dtype, reduced_, activation), given);
  }

  void exact_activation(const Planes& quantized, const Matrix& x, Policy activation, int64_t row,
                        std::span<double> out) const override {
    require_planes(quantized, activation_specs(x, activation));
    if (without_pre_scale(activation) == kWeightOnly) {
      for (int64_t k = 0; k < x.cols; ++k)
        out[k] = load_float(x.dtype, quantized.front().bytes, row * x.cols + k);
      return;
    }
    const AffineParameters at = parameters_at(quantized, activation_block(x, activation).rows == 1 ? row : 0);
    const std::vector<std::byte>& qdata = plane(quantized, "qdata").bytes;
    for (int64_t k = 0; k < x.cols; ++k)
      out[k] = (static_cast<int8_t>(qdata[row * x.cols + k]) - at.zero_point) * static_cast<double>(at.scale);
  }

  // torchao 0.18.0 on torch 2.13.0, CPU: int8_tensor.py, linear. Weight only, scales of rows and of the
  // tensor: mm(x, qdata.to(x.dtype).t()), whose result has x's dtype; times scale.to(x.dtype), again in x's
  // dtype; then the bias is added. Scales of groups: the weight is dequantized to x's dtype, then mm, then
  // the bias. Under a policy: int32 sums become float32, times x's scale, rounded to x's dtype; if
  // asymmetric, minus the zero point's term, computed in float32 and rounded to x's dtype; times the weight's
  // float32 scale, plus the bias, rounded to x's dtype. torchao 0.9.0 plain_layout.py does the same with
  // scales in the weight's dtype.
  LinearStages recorded_stages(const WeightShape&, Policy activation, DType y) const override {
    if (without_pre_scale(activation) != kWeightOnly)
      return {.accumulator = DType::int32, .partial_cast = y, .scale_after_sum = true};
    if (granularity_.kind == Granularity::group)
      return {.weight_cast = y, .product_cast = DType::float32, .output_cast = y};
    return {.scale_cast = y,
            .product_cast = DType::float32,
            .partial_cast = y,
            .output_cast = y,
            .scale_after_sum = true};
  }

  CodeSet codes() const override { return integer_codes(8, true); }

  std::string place(const WeightShape& shape, Layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    int64_t at = static_cast<int64_t>(byte_offset);
    if (plane_name == "qdata") return named_indices("row", "k", at, shape.k);
    if (plane_name == "scale") at /= 4;
    if (granularity_.kind == Granularity::tensor) return "the tensor";
    if (granularity_.kind == Granularity::row) return "row " + std::to_string(at);
    return named_indices("row", "group", at, shape.k / granularity_.size);
  }

 private:
  AffineRecipe weight_recipe(DType weight) const {
    AffineRecipe recipe = recipe_of(weight, reduced_, false);
    if (first_) recipe.scale = weight;
    return recipe;
  }
  Block block(int64_t rows, int64_t cols) const {
    if (granularity_.kind == Granularity::tensor) return {rows, cols};
    return {1, granularity_.size ? granularity_.size : cols};
  }
  int64_t block_of(const WeightShape& shape, int64_t element) const {
    const Block b = block(shape.n, shape.k);
    return element / shape.k / b.rows * (shape.k / b.cols) + element % shape.k / b.cols;
  }
  static Block activation_block(const Matrix& x, Policy activation) {
    return {activation.name().find("_row_") != activation.name().npos ? 1 : x.rows, x.cols};
  }

  static std::string summary_of(Granularity granularity, Recipe recipe) {
    const std::string codes =
        recipe == Recipe::reduced_range ? "int8 weights from -64 to 63" : "int8 weights";
    if (recipe != Recipe::first)
      return codes + ", one float32 scale " + scales_of(granularity) + ", symmetric";
    return codes + ", one scale in the weight's dtype " + scales_of(granularity) +
           ", symmetric: torchao's first generation";
  }

  Granularity granularity_;
  bool reduced_, first_;
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_int8() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (const Recipe recipe : {Recipe::current, Recipe::reduced_range})
    for (const Granularity::Kind kind : {Granularity::row, Granularity::tensor})
      all.push_back(std::make_unique<Int8>(Granularity{kind, 0}, recipe));
  for (const int64_t size : {32, 64, 128})
    all.push_back(std::make_unique<Int8>(Granularity{Granularity::group, size}, Recipe::current));
  all.push_back(std::make_unique<Int8>(Granularity{Granularity::row, 0}, Recipe::first));
  for (const int64_t size : {32, 64, 128})
    all.push_back(std::make_unique<Int8>(Granularity{Granularity::group, size}, Recipe::first));
  return all;
}

}  // namespace qcts
