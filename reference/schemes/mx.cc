// SPDX-License-Identifier: BSD-3-Clause
// mxfp8_e4m3_*, mxfp8_e5m2_*, mxfp6_e2m3_*, mxfp6_e3m2_*, mxfp4_* with * one of floor, ceil, even, rceil:
// torchao 0.18.0 MXTensor.to_mx, to_mx and _to_mx_rceil of torchao/prototype/mx_formats/mx_tensor.py, on a
// CPU. Blocks of 32 along k share a scale 2^(byte - 127). The mode determines how the scale is found; all
// modes have the same meaning: element * scale, both exact in the weight's dtype, rounded to it (to_dtype).
// The formats: OCP Microscaling Formats 1.0. Six-bit elements take a byte each.
//
// Choices, all the library's: mx_scale_floor_normal (a scale byte of 0 divides by 2^-126 and decodes as
// 2^-127), mx_rceil_log2 (the exponent is the ceiling of a float32 logarithm, which just above a power of two
// equals that power's), mx_rceil_zero_unscaled (a scale byte of 0 scales by 1), floatx_nan_bits. The options
// of other implementations are in quantize_mx_by().
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "reference/numerics/block_scales.h"
#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/mx_options.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr int64_t kMxBlock = 32;
constexpr int kBias = 127;  // bias of e8m0 and of float32
constexpr int kNanScale = 255;

constexpr std::array<LayoutInfo, 2> kMxLayouts = {
    {{"plain", "torchao 0.18.0 mx_tensor.py to_mx, is_swizzled_scales=False", true},
     {"swizzled", "torchao 0.18.0 mx_formats/utils.py to_blocked", true}}};
constexpr std::array<ActivationInfo, 2> kMxActivations = {
    {{kWeightOnly.name(), "torchao 0.18.0 MXTensor without act_quant_kwargs"},
     {"dyn_block32", "torchao 0.18.0 mx_tensor.py: MXTensor.to_mx(x) by act_quant_kwargs"}}};

using Mode = ScaleRounding;

struct Element {
  std::string_view name;  // in the scheme's name
  DType type;
  int64_t bits;      // stored per element
  int max_exponent;  // floor(log2(largest)): F8E4M3_MAX_POW2 .. F4_E2M1_MAX_POW2 of mx_formats/constants.py
};
constexpr std::array<Element, 5> kElements = {{{"mxfp8_e4m3", DType::float8_e4m3fn, 8, 8},
                                               {"mxfp8_e5m2", DType::float8_e5m2, 8, 15},
                                               {"mxfp6_e2m3", DType::float6_e2m3fn, 8, 2},
                                               {"mxfp6_e3m2", DType::float6_e3m2fn, 8, 4},
                                               {"mxfp4", DType::float4_e2m1fn_x2, 4, 2}}};

bool is_float8(DType type) { return type == DType::float8_e4m3fn || type == DType::float8_e5m2; }

int code_bits(DType type) { return is_float8(type) ? 8 : type == DType::float4_e2m1fn_x2 ? 4 : 6; }

// A block's scale byte, and the scaled block before the cast.
struct ScaledBlock {
  int scale = 0;
  std::array<float, kMxBlock> values{};
};

// to_mx with FLOOR, CEIL or EVEN: computes the scale byte from the float32 exponent field of max |x|.
int scale_by_exponent(const Element& element, Mode mode, float largest) {
  if (std::isnan(largest)) return kNanScale;
  int64_t bits = std::bit_cast<uint32_t>(largest);
  if (mode == Mode::even) bits += int64_t{1} << (23 - float_format(element.type).mantissa_bits - 1);
  int exponent = static_cast<int>(bits >> 23 & 0xFF) - kBias;
  if (mode == Mode::ceil && (bits & 0x7FFFFF)) ++exponent;
  return std::clamp(exponent - element.max_exponent, -kBias, kBias + 1) + kBias;
}

ScaledBlock scale_block(const Element& element, Mode mode, std::span<const float> block,
                        float least_scale = 0x1p-126f) {
  ScaledBlock scaled;
  const float largest = largest_magnitude(block);
  scaled.scale = scale_by_exponent(element, mode, largest);
  // byte << 23 read as float32: 255 is infinity, 0 is raised to the minimum scale.
  const float scale = std::max(std::bit_cast<float>(scaled.scale << 23), least_scale);
  const float max = static_cast<float>(float_format(element.type).max);
  for (size_t i = 0; i < block.size(); ++i) {
    float value = div_x86(block[i], scale);
    if (is_float8(element.type) && !std::isnan(value)) value = std::clamp(value, -max, max);
    scaled.values[i] = value;
  }
  return scaled;
}

// The block of RCEIL with this scale byte: times 2^(127 - byte), by 1 if the byte is 0, by `nan` if it is
// 255.
ScaledBlock multiplied(const Element& element, int scale, std::span<const float> block, float nan) {
  const float max = static_cast<float>(float_format(element.type).max);
  const float factor = scale == 0 ? 1 : scale == kNanScale ? nan : std::ldexp(1.0f, kBias - scale);
  ScaledBlock scaled;
  scaled.scale = scale;
  for (size_t i = 0; i < block.size(); ++i) {
    const float value = mul_x86(block[i], factor);
    scaled.values[i] = std::isnan(value) ? value : std::clamp(value, -max, max);
  }
  return scaled;
}

// _to_mx_rceil: ceil(log2(max |x| / largest element)), logarithm rounded to float32.
ScaledBlock scale_block_rceil(const Element& element, std::span<const float> block) {
  const float max = static_cast<float>(float_format(element.type).max);
  const float ratio = largest_magnitude(block) / max;
  int scale = 254;
  if (std::isnan(ratio)) {
    scale = kNanScale;
  } else if (!std::isinf(ratio)) {
    const float exponent = std::ceil(static_cast<float>(std::log2(static_cast<double>(ratio))));
    scale = static_cast<int>(std::clamp(exponent, -127.0f, 127.0f)) + kBias;
  }
  return multiplied(element, scale, block, ratio);
}

// float_to_e8m0 of TransformerEngine (cvt.rp.satfinite.ue8m0x2): the exponent of max |x| * (1 / largest
// element), a product of float32, plus one unless it is a power of two. 2^-127 is subnormal in float32.
ScaledBlock scale_block_rceil_bits(const Element& element, std::span<const float> block) {
  const float reciprocal = 1 / static_cast<float>(float_format(element.type).max);
  const float value = largest_magnitude(block) * reciprocal;
  if (std::isnan(value)) return multiplied(element, kNanScale, block, value);
  const uint32_t bits = std::bit_cast<uint32_t>(value), mantissa = bits & 0x7FFFFF;
  const int exponent = static_cast<int>(bits >> 23);
  const bool is_above = mantissa > 0 && !(exponent == 0 && mantissa <= 0x400000);
  return multiplied(element, std::min(exponent + is_above, 254), block, value);
}

uint8_t element_code(const Element& element, float value) {
  return is_float8(element.type) ? static_cast<uint8_t>(encode_float(element.type, value))
                                 : floatx_code(element.type, value);
}

class Mx final : public Scheme {
 public:
  Mx(const Element& element, Mode mode, std::string_view mode_name)
      : Scheme({.name = std::string(element.name) + "_" + std::string(mode_name),
                .family = "mx",
                .summary = std::string(dtype_name(element.type)) +
                           " weights, one e8m0 scale per 32 elements along k, rounded by " +
                           std::string(mode_name),
                .source = "torchao 0.18.0 MXDynamicActivationMXWeightConfig: MXTensor.to_mx, to_mx, "
                          "_to_mx_rceil, to_dtype",
                .group = kMxBlock,
                .params = {.bits = code_bits(element.type),
                           .element = element.type,
                           .scale = DType::float8_e8m0fnu,
                           .scale_rounding = mode},
                .meaning = std::string(element.name),
                .layouts = {kMxLayouts.begin(), kMxLayouts.end()}}),
        element_(element),
        mode_(mode) {}

  std::span<const ActivationInfo> activations() const override { return kMxActivations; }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout, {DType::float32, DType::bfloat16})) return why_not;
    return refused_size(shape, kMxBlock, "the block size ");
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout layout) const override {
    const DType stored = is_float8(element_.type) ? element_.type : DType::uint8;
    const int64_t blocks = shape.k / kMxBlock;
    return {{"qdata", stored, {shape.n, shape.k * element_.bits / 8}},
            {"scale", DType::float8_e8m0fnu,
             layout == "swizzled" ? swizzled_shape(shape.n, blocks) : std::vector<int64_t>{shape.n, blocks}}};
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    return quantize_by(weight, [&](std::span<const float> block) {
      return mode_ == Mode::rceil ? scale_block_rceil(element_, block) : scale_block(element_, mode_, block);
    });
  }

  Planes quantize_by(MxOption option, const Matrix& weight) const {
    const bool is_rceil = mode_ == Mode::rceil;
    if (is_rceil != (option == MxOption::rceil_bits))
      throw std::invalid_argument(std::string(name()) + " has no such option");
    return quantize_by(weight, [&](std::span<const float> block) {
      return is_rceil ? scale_block_rceil_bits(element_, block)
                      : scale_block(element_, mode_, block, 0x1p-127f);
    });
  }

  template <typename ScaleBlock>
  Planes quantize_by(const Matrix& weight, const ScaleBlock& scale) const {
    Planes planes = make_planes(plane_specs({weight.dtype, weight.rows, weight.cols}, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    for (size_t block = 0; block < values.size() / kMxBlock; ++block) {
      const std::span<const float> source(values.data() + block * kMxBlock, kMxBlock);
      const ScaledBlock scaled = scale(source);
      planes[1].bytes[block] = static_cast<std::byte>(scaled.scale);
      for (int64_t i = 0; i < kMxBlock; ++i) {
        const int64_t index = static_cast<int64_t>(block) * kMxBlock + i;
        const uint8_t code = element_code(element_, scaled.values[i]);
        if (element_.bits == 8)
          planes[0].bytes[index] = static_cast<std::byte>(code);
        else if (i % 2)
          store_pair(planes[0].bytes, index / 2, element_code(element_, scaled.values[i - 1]), code);
      }
    }
    return planes;
  }

  // The largest weight of a block is at most 2^max_exponent after "ceil", and below twice as much after
  // "floor" and "even", which end at the largest element. A scale byte of 0 divides by 2^-126 instead of
  // 2^-127 (rceil: by 1), which halves these. No finite weight has a NaN.
  Written written(const WeightShape&, Layout, Magnitudes of) const override {
    const auto scale = [&](double largest) {
      const std::array<float, kMxBlock> block = {static_cast<float>(largest)};
      const ScaledBlock scaled =
          mode_ == Mode::rceil ? scale_block_rceil(element_, block) : scale_block(element_, mode_, block);
      return std::ldexp(1.0, scaled.scale - kBias);
    };
    const double power = std::ldexp(1.0, element_.max_exponent), max = float_format(element_.type).max;
    const double most = mode_ == Mode::ceil ? power : max;
    const double most_unscaled =
        mode_ == Mode::rceil  ? 0
        : mode_ == Mode::ceil ? power / 2
        : mode_ == Mode::even ? power * (1 - std::ldexp(0.5, -float_format(element_.type).mantissa_bits))
                              : power;
    const double first = 0x1p-126, zero = 0x1p-127;
    Written written = {
        {"",
         source(),
         {{"qdata", {-most, most}}, {"scale", {std::max(scale(of.least), first), scale(of.most)}}}}};
    if (scale(of.least) == zero)
      written.push_back({"the scale byte is 0",
                         mode_ == Mode::rceil ? "mx_rceil_zero_unscaled" : "mx_scale_floor_normal",
                         {{"qdata", {-most_unscaled, most_unscaled}}, {"scale", {zero, zero}}}});
    return written;
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    return (row * shape.k + k) / (plane == "qdata" ? 1 : kMxBlock);
  }

  Planes pack(const Planes& plain, const WeightShape& shape, Layout layout) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    Planes packed = make_planes(plane_specs(shape, layout));
    packed[0].bytes = plane(plain, "qdata").bytes;
    swizzle(shape.n, shape.k / kMxBlock, plane(plain, "scale").bytes, packed[1].bytes);
    return packed;
  }

  Planes unpack(const Planes& packed, const WeightShape& shape, Layout layout) const override {
    require_planes(packed, plane_specs(shape, layout));
    Planes plain = make_planes(plane_specs(shape, kPlain));
    plain[0].bytes = plane(packed, "qdata").bytes;
    unswizzle(shape.n, shape.k / kMxBlock, plane(packed, "scale").bytes, plain[1].bytes);
    return plain;
  }

  // torchao 0.18.0 on torch 2.13.0, CPU: mx_tensor.py with KernelPreference.EMULATED, x and the weight
  // dequantized to x's dtype.
  LinearStages recorded_stages(const WeightShape&, Policy, DType y) const override {
    return {.x_cast = y, .weight_cast = y, .product_cast = DType::float32, .output_cast = y};
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const std::vector<std::byte>&qdata = plane(plain, "qdata").bytes, &scales = plane(plain, "scale").bytes;
    for (int64_t k = 0; k < shape.k; ++k) {
      const int64_t index = row * shape.k + k;
      const double code = code_value(qdata, index);
      const double scale = load_float(DType::float8_e8m0fnu, scales, index / kMxBlock);
      out[k] = {.product = code * scale, .zero = 0, .code = code, .scale = scale};
    }
  }

  std::vector<PlaneSpec> activation_specs(const Matrix& x, Policy activation) const override {
    require_policy(activation);
    if (const auto why_not = refusal({x.dtype, x.rows, x.cols}, kPlain))
      throw std::invalid_argument(*why_not);
    return plane_specs({x.dtype, x.rows, x.cols}, kPlain);
  }
  // Quantizes x by the weight's recipe (the config's QuantizeTensorToMXKwargs has the same mode).
  Planes quantize_activation(const Matrix& x, Policy activation, const Planes&) const override {
    activation_specs(x, activation);
    return quantize(x, kPlain);
  }
  void exact_activation(const Planes& planes, const Matrix& x, Policy, int64_t row,
                        std::span<double> out) const override {
    std::vector<ExactWeight> exact(x.cols);
    exact_row(planes, {x.dtype, x.rows, x.cols}, row, exact);
    for (int64_t k = 0; k < x.cols; ++k) out[k] = exact[k].product;
  }

  CodeSet codes() const override { return float_codes(element_.type); }

  std::string place(const WeightShape& shape, Layout layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset), blocks = shape.k / kMxBlock;
    if (plane_name == "scale") {
      if (layout == "swizzled") return swizzled_place(shape.n, blocks, offset);
      return named_indices("row", "block", offset, blocks);
    }
    return named_indices("row", "k", offset * 8 / element_.bits, shape.k) +
           (element_.bits == 4 ? " (low nibble) and the next" : "");
  }

 private:
  double code_value(std::span<const std::byte> qdata, int64_t index) const {
    const uint8_t code = element_.bits == 4 ? load_nibble(qdata, index) : static_cast<uint8_t>(qdata[index]);
    // Six-bit elements are in the low bits of their byte.
    return decode_float(element_.type, is_float8(element_.type) ? code : code & 0x3F);
  }

  const Element& element_;
  Mode mode_;
};

}  // namespace

Planes quantize_mx_by(MxOption option, const Scheme& scheme, const Matrix& weight) {
  if (scheme.family() != "mx") throw std::invalid_argument(std::string(scheme.name()) + " is not mx");
  return static_cast<const Mx&>(scheme).quantize_by(option, weight);
}

std::vector<std::unique_ptr<Scheme>> make_mx() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (const Element& element : kElements) {
    all.push_back(std::make_unique<Mx>(element, Mode::floor, "floor"));
    all.push_back(std::make_unique<Mx>(element, Mode::ceil, "ceil"));
    all.push_back(std::make_unique<Mx>(element, Mode::even, "even"));
    all.push_back(std::make_unique<Mx>(element, Mode::rceil, "rceil"));
  }
  return all;
}

}  // namespace qcts
