// SPDX-License-Identifier: BSD-3-Clause
// gguf_proto: torchao 0.18.0 GGUFWeightOnlyConfig, GGUFQuantizedTensor.from_float
// (torchao/prototype/quantization/gguf/gguf_quantized_tensor.py) with _choose_qparams_gguf, _quantize_gguf
// and _dequantize_gguf of torchao/quantization/quant_primitives.py. It has the structure of GGML's Q4_K,
// super blocks of 256 with eight blocks of 32, but not its bytes: no step rounds to an integer, and "codes"
// are numbers of the weight's dtype, so the file is larger than the weight. A block's negative minimum
// becomes 0. Every operation rounds to the weight's dtype.
#include <algorithm>
#include <array>
#include <cmath>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr int64_t kSuperBlock = 256, kBlock = 32, kBlocks = kSuperBlock / kBlock;
constexpr float kSteps = 15;        // steps of a 4-bit code
constexpr float kLargestCode = 63;  // largest 6-bit scale or minimum

struct BlockParameters {
  float scale = 0, min = 0;
};

float larger_magnitude(float so_far, float value) {
  return std::isnan(so_far) || std::isnan(value) ? NAN : std::max(so_far, std::fabs(value));
}

// torch.clamp keeps NaN.
float clamped(float value) { return std::isnan(value) ? value : std::clamp(value, 0.0f, kLargestCode); }

BlockParameters range_of(DType dtype, std::span<const float> block) {
  float low = block[0], high = block[0];
  for (float w : block) {
    if (std::isnan(w)) return {w, w};
    low = std::min(low, w);
    high = std::max(high, w);
  }
  return {div_in(dtype, sub_in(dtype, high, low), kSteps), low};
}

// Returns the largest finite codes of both signs. A code is largest where a block's weights differ by one
// unit in the last place, 32 times the smallest subnormal number, so that its scale rounds to two of them and
// the recovered scale to one: w is then (2^p - 1) * 32 times the recovered scale. A minimum below 0 becomes
// 0. One above 0 is recovered as 0 if it is small compared with the largest of its super block; in float16
// none below 521 times the smallest subnormal number is, and the others of the block are at most 37 of these
// above it.
ValueRange largest_codes(DType dtype) {
  const double largest = (std::ldexp(1.0, float_format(dtype).mantissa_bits + 1) - 1) * 32;
  return {-largest, dtype == DType::float16 ? 520 + 37 : largest};
}

// Planes in flatten order.
enum Part { kScaleScale, kMinScale, kScale, kMin, kCodes };

class GgufProto final : public Scheme {
 public:
  GgufProto()
      : Scheme({.name = "gguf_proto",
                .family = "gguf_proto",
                .summary =
                    "torchao's GGUF prototype: scales of scales in super blocks of 256, and codes that "
                    "stay floats",
                .source = "torchao 0.18.0 GGUFWeightOnlyConfig: GGUFQuantizedTensor.from_float, "
                          "_choose_qparams_gguf, _quantize_gguf, _dequantize_gguf",
                .group = kBlock,
                .params = {.bits = 4,
                           .element = std::nullopt,
                           .scale = std::nullopt,
                           .levels = 2,
                           .zero_point = ZeroPointKind::floating,
                           .mapping = Mapping::asymmetric},
                .layouts = {{"plain", "torchao 0.18.0 gguf_quantized_tensor.py GGUFQuantizedTensor"}}}) {}

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout)) return why_not;
    return refused_size(shape, kSuperBlock, "the super block of ");
  }

  // A row of one super block has no super block dimension.
  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout) const override {
    std::vector<int64_t> supers = {shape.n};
    if (shape.k != kSuperBlock) supers.push_back(shape.k / kSuperBlock);
    std::vector<int64_t> blocks = supers;
    blocks.push_back(kBlocks);
    return {{"super_block_scale_scale", shape.dtype, supers},
            {"super_block_min_scale", shape.dtype, supers},
            {"quantized_block_scale", shape.dtype, blocks},
            {"quantized_block_min", shape.dtype, blocks},
            {"int_data", shape.dtype, {shape.n, shape.k}}};
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    const WeightShape shape = {weight.dtype, weight.rows, weight.cols};
    Planes planes = make_planes(plane_specs(shape, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    for (int64_t s = 0; s < shape.n * shape.k / kSuperBlock; ++s)
      quantize_super_block(shape.dtype, {values.data() + s * kSuperBlock, kSuperBlock}, s, planes);
    return planes;
  }

  // A code is (w - recovered minimum) / recovered scale, so it is infinite or NaN where that scale is 0, as
  // in a block of equal weights, and NaN where a parameter is, which is 0/0 where all eight blocks have none.
  Written written(const WeightShape& shape, Layout, Magnitudes of) const override {
    const DType dtype = shape.dtype;
    const float most = static_cast<float>(of.most);
    const float max = static_cast<float>(float_format(dtype).max);
    const bool overflows = std::isinf(sub_in(dtype, most, -most));
    const float widest = div_in(dtype, overflows ? max : 2 * most, kSteps);
    const double tiny = float_format(dtype).min_subnormal;
    const ValueRange scale_scales = {tiny, div_in(dtype, widest, kLargestCode)};
    const ValueRange scales = {tiny, kLargestCode}, mins = {0, kLargestCode},
                     all_scales = {0, kLargestCode, true};
    const std::vector<ValueRange> by_zero = {kInfinite, {-INFINITY, -INFINITY, true}};
    const auto row = [&](std::string_view when, const std::vector<ValueRange>& codes, ValueRange of_scales,
                         ValueRange of_mins, ValueRange scale, ValueRange min) {
      WrittenCase made{when,
                       source(),
                       {{"super_block_scale_scale", of_scales},
                        {"super_block_min_scale", of_mins},
                        {"quantized_block_scale", scale},
                        {"quantized_block_min", min}}};
      for (const ValueRange& range : codes) made.ranges.push_back({"int_data", range});
      return made;
    };
    const ValueRange min_scales = {0, div_in(dtype, most, kLargestCode)};
    Written written = {
        row("", {largest_codes(dtype)}, scale_scales, min_scales, scales, mins),
        row("the scale of the block is 0", by_zero, scale_scales, min_scales, kZero, mins),
        row("every scale of the super block rounds to 0", by_zero, kZero, min_scales,
            {kLargestCode, kLargestCode}, mins),
        row("every scale of the super block is 0", {kNanAlone}, kZero, min_scales, kNanAlone, mins),
        row("every minimum of the super block is 0", {kNanAlone}, {0, scale_scales.max}, kZero, all_scales,
            kNanAlone)};
    if (overflows)
      written.push_back(row("max - min overflows the weight's type", {kNanAlone}, kInfinite, min_scales,
                            {0, 0, true}, mins));
    return written;
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    const int64_t element = row * shape.k + k;
    return element / (plane == "int_data" ? 1 : plane.starts_with("super") ? kSuperBlock : kBlock);
  }

  // Rounds the product and the sum to the weight's dtype.
  double dequantized(DType dtype, const ExactWeight& w) const override {
    const float product = mul_in(dtype, static_cast<float>(w.code), static_cast<float>(w.scale));
    return add_in(dtype, product, static_cast<float>(w.zero));
  }

  // torchao 0.18.0 on torch 2.13.0, CPU: gguf_quantized_tensor.py, linear on the dequantized weight. In
  // narrow types product and sum are rounded separately, which no bound allows.
  LinearStages recorded_stages(const WeightShape& weight, Policy activation, DType y) const override {
    if (y != DType::float32) return Scheme::recorded_stages(weight, activation, y);
    return {.weight_cast = DType::float32, .product_cast = DType::float32, .output_cast = y};
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    for (int64_t k = 0; k < shape.k; ++k) {
      const int64_t element = row * shape.k + k;
      const BlockParameters block = recovered(shape.dtype, plain, element / kBlock);
      const double code = load_float(shape.dtype, plane(plain, "int_data").bytes, element);
      out[k] = {.product = code * block.scale, .zero = block.min, .code = code, .scale = block.scale};
    }
  }

  CodeSet codes() const override { return {}; }  // never rounded

  std::string place(const WeightShape& shape, Layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t at = static_cast<int64_t>(byte_offset) / dtype_bytes(shape.dtype);
    if (plane_name == "int_data") return named_indices("row", "k", at, shape.k);
    if (plane_name.starts_with("super"))
      return named_indices("row", "super block", at, shape.k / kSuperBlock);
    return named_indices("row", "block", at, shape.k / kBlock);
  }

 private:
  // Returns a block's scale and minimum after the second level of quantization.
  static BlockParameters recovered(DType dtype, const Planes& planes, int64_t block) {
    const auto value = [&](Part part, int64_t index) {
      return static_cast<float>(load_float(dtype, planes[part].bytes, index));
    };
    return {mul_in(dtype, value(kScaleScale, block / kBlocks), value(kScale, block)),
            mul_in(dtype, value(kMinScale, block / kBlocks), value(kMin, block))};
  }

  static void quantize_super_block(DType dtype, std::span<const float> values, int64_t super,
                                   Planes& planes) {
    std::array<BlockParameters, kBlocks> blocks;
    float largest_scale = 0, largest_min = 0;
    for (int64_t b = 0; b < kBlocks; ++b) {
      blocks[b] = range_of(dtype, values.subspan(b * kBlock, kBlock));
      largest_scale = larger_magnitude(largest_scale, blocks[b].scale);
      largest_min = larger_magnitude(largest_min, blocks[b].min);
    }
    const float scale_scale = div_in(dtype, largest_scale, kLargestCode);
    const float min_scale = div_in(dtype, largest_min, kLargestCode);
    store_float(dtype, planes[kScaleScale].bytes, super, scale_scale);
    store_float(dtype, planes[kMinScale].bytes, super, min_scale);
    for (int64_t b = 0; b < kBlocks; ++b) {
      const int64_t block = super * kBlocks + b;
      store_float(dtype, planes[kScale].bytes, block, clamped(div_in(dtype, blocks[b].scale, scale_scale)));
      store_float(dtype, planes[kMin].bytes, block, clamped(div_in(dtype, blocks[b].min, min_scale)));
      const BlockParameters kept = recovered(dtype, planes, block);
      for (int64_t i = 0; i < kBlock; ++i)
        store_float(dtype, planes[kCodes].bytes, block * kBlock + i,
                    div_in(dtype, sub_in(dtype, values[b * kBlock + i], kept.min), kept.scale));
    }
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_gguf_proto() {
  std::vector<std::unique_ptr<Scheme>> all;
  all.push_back(std::make_unique<GgufProto>());
  return all;
}

}  // namespace qcts
