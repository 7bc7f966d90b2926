// SPDX-License-Identifier: BSD-3-Clause
// nvfp4_one_level, nvfp4_two_level: torchao 0.18.0 NVFP4WeightOnlyConfig and
// NVFP4DynamicActivationNVFP4WeightConfig, NVFP4Tensor.to_nvfp4, nvfp4_quantize and per_tensor_amax_to_scale
// of torchao/prototype/mx_formats/nvfp4_tensor.py, without its triton kernel. Blocks of 16 along k share an
// e4m3 scale; with two levels a float32 scale of the whole weight multiplies these. Meaning
// (NVFP4Tensor.dequantize): code * (per_tensor_scale * scale), both products in float32, then the cast.
//
// Choices, all the library's: nvfp4_reciprocal_multiply (x * (1/scale), not x / scale), nvfp4_scale_floor (a
// block's scale is at least 2^-6, e4m3's smallest normal number), nvfp4_zero_tensor_nan (two levels of a
// tensor of zeros: 0/0), floatx_nan_bits.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "reference/numerics/block_scales.h"
#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr int64_t kNvfp4Block = 16;
constexpr float kNvfp4LargestCode = 6.0f;  // F4_E2M1_MAX
constexpr float kLargestScale = 448.0f;    // F8E4M3_MAX
constexpr float kNvfp4MinScale = 0x1p-6f;  // E4M3_EPS = torch.finfo(torch.float8_e4m3fn).tiny

constexpr std::array<LayoutInfo, 2> kNvfp4Layouts = {
    {{"plain", "torchao 0.18.0 nvfp4_tensor.py to_nvfp4, is_swizzled_scales=False", true},
     {"swizzled", "torchao 0.18.0 mx_formats/utils.py to_blocked", true}}};
constexpr std::string_view kActivationSource =
    "torchao 0.18.0 nvfp4_tensor.py, nvfp4_linear: NVFP4Tensor.to_nvfp4(x)";
constexpr std::array<ActivationInfo, 4> kNvfp4Activations = {
    {{kWeightOnly.name(), "torchao 0.18.0 NVFP4WeightOnlyConfig"},
     {"dyn_block16", kActivationSource},
     {"dyn_tensor_block16", kActivationSource},
     {"static_tensor_block16", kActivationSource}}};

enum class Levels { one, two };

// per_tensor_amax_to_scale
float tensor_scale(std::span<const float> values) {
  return largest_magnitude(values) / (kLargestScale * kNvfp4LargestCode);
}

// c10/util/Float8_e4m3fn.h: NaN becomes the float32 pattern with the top three bits of its mantissa set.
float scale_value(uint8_t byte) {
  if ((byte & 0x7F) == 0x7F) return std::bit_cast<float>(byte & 0x80 ? 0xFFF00000u : 0x7FF00000u);
  return static_cast<float>(decode_float(DType::float8_e4m3fn, byte));
}

// Quantizes one block like nvfp4_quantize and returns its e4m3 scale byte; tensor_scale is nullptr with one
// level.
uint8_t quantize_block(std::span<const float> block, const float* tensor_scale, std::span<std::byte> pairs) {
  float scale = largest_magnitude(block) / kNvfp4LargestCode;
  if (tensor_scale) scale = div_x86(scale, *tensor_scale);
  if (!std::isnan(scale)) scale = std::clamp(scale, kNvfp4MinScale, kLargestScale);
  const uint8_t byte = static_cast<uint8_t>(encode_float(DType::float8_e4m3fn, scale));
  const float stored = scale_value(byte);
  const float factor = div_x86(tensor_scale ? div_x86(1.0f, *tensor_scale) : 1.0f, stored);
  std::array<uint8_t, kNvfp4Block> codes;
  for (int64_t i = 0; i < kNvfp4Block; ++i) {
    const float value = mul_x86(block[i], factor);
    codes[i] =
        floatx_code(DType::float4_e2m1fn_x2,
                    std::isnan(value) ? value : std::clamp(value, -kNvfp4LargestCode, kNvfp4LargestCode));
  }
  for (int64_t i = 0; i < kNvfp4Block; i += 2) store_pair(pairs, i / 2, codes[i], codes[i + 1]);
  return byte;
}

class Nvfp4 final : public Scheme {
 public:
  explicit Nvfp4(Levels levels)
      : Scheme({.name = levels == Levels::one ? "nvfp4_one_level" : "nvfp4_two_level",
                .family = "nvfp4",
                .summary = std::string("e2m1 weights, one e4m3 scale per 16 elements along k") +
                           (levels == Levels::one ? "" : ", one float32 scale for the tensor"),
                .source = "torchao 0.18.0 NVFP4WeightOnlyConfig: NVFP4Tensor.to_nvfp4, nvfp4_quantize, "
                          "per_tensor_amax_to_scale",
                .group = kNvfp4Block,
                .params = {.bits = 4,
                           .element = DType::float4_e2m1fn_x2,
                           .scale = DType::float8_e4m3fn,
                           .levels = levels == Levels::one ? 1 : 2},
                .layouts = {kNvfp4Layouts.begin(), kNvfp4Layouts.end()}}),
        levels_(levels) {}

  std::span<const ActivationInfo> activations() const override { return kNvfp4Activations; }
  std::vector<PlaneSpec> policy_specs(const WeightShape&, Policy activation) const override {
    if (activation != "static_tensor_block16") return {};
    return {{"act_per_tensor_scale", DType::float32, {}}};
  }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout, {DType::float32, DType::bfloat16})) return why_not;
    return refused_size(shape, kNvfp4Block, "the block size ");
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout layout) const override {
    return specs_of(levels_, shape, layout);
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    Planes planes = make_planes(plane_specs({weight.dtype, weight.rows, weight.cols}, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    const float whole = tensor_scale(values);
    quantize_blocks(values, levels_ == Levels::one ? nullptr : &whole, planes);
    if (levels_ != Levels::one) store_float(DType::float32, planes[2].bytes, 0, whole);
    return planes;
  }

  // Choice nvfp4_zero_tensor_nan: where the weight's scale is 0, a block of zeros is 0/0. One with other
  // weights, which float32 has below 2^-149 * 1344, is clamped.
  Written written(const WeightShape& shape, Layout, Magnitudes of) const override {
    const auto whole = [](double largest) -> double {
      const std::array<float, 1> one = {static_cast<float>(largest)};
      return tensor_scale(one);
    };
    const ValueRange codes = {-kNvfp4LargestCode, kNvfp4LargestCode};
    Written written = {{"", source(), {{"qdata", codes}, {"scale", {kNvfp4MinScale, kLargestScale}}}}};
    if (levels_ == Levels::one) return written;
    const double least = std::max({whole(of.least), whole(float_format(shape.dtype).min_subnormal),
                                   float_format(DType::float32).min_subnormal});
    written.front().ranges.push_back({"per_tensor_scale", {least, whole(of.most)}});
    if (whole(of.least) == 0) {
      written.push_back({"the weight's scale is 0",
                         "nvfp4_zero_tensor_nan",
                         {{"qdata", codes}, {"scale", kNanAlone}, {"per_tensor_scale", kZero}}});
      if (whole(float_format(shape.dtype).min_subnormal) == 0)
        written.back().ranges.push_back({"scale", {kLargestScale, kLargestScale}});
    }
    return written;
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    const int64_t element = row * shape.k + k;
    return plane == "qdata" ? element : plane == "scale" ? element / kNvfp4Block : 0;
  }

  // A calibration takes the largest magnitude of finite x: per_tensor_amax_to_scale.
  std::vector<WrittenRange> policy_ranges(const WeightShape& shape, Policy activation) const override {
    if (activation != "static_tensor_block16") return {};
    const std::array<float, 1> max = {static_cast<float>(float_format(shape.dtype).max)};
    return {{"act_per_tensor_scale", {0, tensor_scale(max)}}};
  }

  Planes pack(const Planes& plain, const WeightShape& shape, Layout layout) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    Planes packed = make_planes(plane_specs(shape, layout));
    for (Plane& target : packed)
      if (target.name != "scale") target.bytes = plane(plain, target.name).bytes;
    swizzle(shape.n, shape.k / kNvfp4Block, plane(plain, "scale").bytes, packed[1].bytes);
    return packed;
  }

  Planes unpack(const Planes& packed, const WeightShape& shape, Layout layout) const override {
    require_planes(packed, plane_specs(shape, layout));
    Planes plain = make_planes(plane_specs(shape, kPlain));
    for (Plane& target : plain)
      if (target.name != "scale") target.bytes = plane(packed, target.name).bytes;
    unswizzle(shape.n, shape.k / kNvfp4Block, plane(packed, "scale").bytes, plain[1].bytes);
    return plain;
  }

  // torchao 0.18.0 on torch 2.13.0, CPU: nvfp4_tensor.py, nvfp4_linear: the product of both scales in
  // float32, the weight dequantized to x's dtype, then mm and + bias.
  LinearStages recorded_stages(const WeightShape& weight, Policy activation, DType y) const override {
    if (activation != kWeightOnly) return Scheme::recorded_stages(weight, activation, y);
    return {.scale_cast = DType::float32, .weight_cast = y, .product_cast = DType::float32, .output_cast = y};
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const double whole = whole_scale(plain);
    for (int64_t k = 0; k < shape.k; ++k) {
      const int64_t index = row * shape.k + k;
      const double code = code_value(plain, index), scale = whole * block_scale(plain, index);
      out[k] = {.product = code * scale, .zero = 0, .code = code, .scale = scale};
    }
  }

  // dyn_block16 has one level, the others two. Planes "qdata", "scale", and with two levels
  // "per_tensor_scale".
  std::vector<PlaneSpec> activation_specs(const Matrix& x, Policy activation) const override {
    require_policy(activation);
    const WeightShape shape = {x.dtype, x.rows, x.cols};
    if (const auto why_not = refusal(shape, kPlain)) throw std::invalid_argument(*why_not);
    return specs_of(activation == "dyn_block16" ? Levels::one : Levels::two, shape, kPlain);
  }

  Planes quantize_activation(const Matrix& x, Policy activation, const Planes& weight) const override {
    Planes planes = make_planes(activation_specs(x, activation));
    const std::vector<float> values = load_floats(x.dtype, x.bytes);
    const float whole =
        activation == "static_tensor_block16"
            ? static_cast<float>(load_float(DType::float32, plane(weight, "act_per_tensor_scale").bytes, 0))
            : tensor_scale(values);
    const bool two_levels = activation != "dyn_block16";
    quantize_blocks(values, two_levels ? &whole : nullptr, planes);
    if (two_levels) store_float(DType::float32, planes[2].bytes, 0, whole);
    return planes;
  }

  void exact_activation(const Planes& planes, const Matrix& x, Policy activation, int64_t row,
                        std::span<double> out) const override {
    require_planes(planes, activation_specs(x, activation));
    for (int64_t k = 0; k < x.cols; ++k) {
      const int64_t index = row * x.cols + k;
      out[k] = code_value(planes, index) * (whole_scale(planes) * block_scale(planes, index));
    }
  }

  CodeSet codes() const override { return float_codes(DType::float4_e2m1fn_x2); }

  std::string place(const WeightShape& shape, Layout layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset), blocks = shape.k / kNvfp4Block;
    if (plane_name == "per_tensor_scale") return "the weight's scale";
    if (plane_name == "act_per_tensor_scale") return "the activation's scale";
    if (plane_name == "scale") {
      if (layout == "swizzled") return swizzled_place(shape.n, blocks, offset);
      return named_indices("row", "block", offset, blocks);
    }
    return named_indices("row", "k", offset * 2, shape.k) + " (low nibble) and the next";
  }

 private:
  static std::vector<PlaneSpec> specs_of(Levels levels, const WeightShape& shape, Layout layout) {
    const int64_t blocks = shape.k / kNvfp4Block;
    std::vector<PlaneSpec> specs = {
        {"qdata", DType::uint8, {shape.n, shape.k / 2}},
        {"scale", DType::float8_e4m3fn,
         layout == "swizzled" ? swizzled_shape(shape.n, blocks) : std::vector<int64_t>{shape.n, blocks}}};
    if (levels != Levels::one) specs.push_back({"per_tensor_scale", DType::float32, {}});
    return specs;
  }

  static void quantize_blocks(std::span<const float> values, const float* whole, Planes& planes) {
    for (size_t block = 0; block < values.size() / kNvfp4Block; ++block)
      planes[1].bytes[block] = static_cast<std::byte>(
          quantize_block(values.subspan(block * kNvfp4Block, kNvfp4Block), whole,
                         std::span(planes[0].bytes).subspan(block * kNvfp4Block / 2, kNvfp4Block / 2)));
  }

  static double code_value(const Planes& planes, int64_t index) {
    return decode_float(DType::float4_e2m1fn_x2, load_nibble(plane(planes, "qdata").bytes, index));
  }
  static double block_scale(const Planes& planes, int64_t index) {
    return load_float(DType::float8_e4m3fn, plane(planes, "scale").bytes, index / kNvfp4Block);
  }
  // Returns the tensor's scale; 1 if the planes have one level.
  static double whole_scale(const Planes& planes) {
    for (const Plane& candidate : planes)
      if (candidate.name == "per_tensor_scale") return load_float(DType::float32, candidate.bytes, 0);
    return 1.0;
  }

  Levels levels_;
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_nvfp4() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (Levels levels : {Levels::one, Levels::two}) all.push_back(std::make_unique<Nvfp4>(levels));
  return all;
}

}  // namespace qcts
