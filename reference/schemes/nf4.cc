// SPDX-License-Identifier: BSD-3-Clause
// nf4_b64_s256: torchao 0.18.0 to_nf4(weight, block_size=64, scaler_block_size=256), NF4Tensor.from_tensor,
// double_quantize_scalers, convert_to_norm_float_weight and get_original_weight of
// torchao/quantization/quantize_/workflows/nf4/nf4_tensor.py. Blocks of 64 of the flattened weight share a
// scaler (their largest magnitude); 256 scalers minus their mean share a quantization factor. Every operation
// rounds to the weight's dtype.
//
// Encoding is closed-form except for the mean of the scalers, a float32 sum in the library's own order. Here
// it is summed exactly and rounded once, so scaler_mean, and with it quantized_scalers and
// quantization_factor, may differ from the library's by one step (choice nf4_mean_order); quantized_data does
// not depend on it. The library's other choices: nf4_table_rounded (the table to four decimals, then to the
// dtype, unlike bitsandbytes), nf4_even_high (the even element in the high nibble), nf4_zero_block (0/0 takes
// code 0).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reference/numerics/block_scales.h"
#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr int64_t kNf4Block = 64;
constexpr int64_t kScalerBlock = 256;

constexpr std::array<double, 16> kTable = {-1.0000, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848,
                                           -0.0911, 0.0000,  0.0796,  0.1609,  0.2461,  0.3379,
                                           0.4407,  0.5626,  0.7230,  1.0000};

// scalers.mean(): sums in float32, divides by the count in float32, then casts to the dtype.
float mean_of(DType dtype, std::span<const float> scalers) {
  double sum = 0;
  for (float scaler : scalers) sum += scaler;
  return round_to(dtype, static_cast<float>(sum) / static_cast<float>(scalers.size()));
}

// quantize_tensor_nearest: returns the index of the smallest |value - table|, the lower one for a tie; a NaN
// matches any.
uint8_t nearest(DType dtype, float value, std::span<const float> table) {
  if (std::isnan(value)) return 0;
  uint8_t best = 0;
  for (uint8_t code = 1; code < 16; ++code)
    if (std::fabs(sub_in(dtype, value, table[code])) < std::fabs(sub_in(dtype, value, table[best])))
      best = code;
  return best;
}

// round, clamp, .to(int8); NaN becomes 0.
int8_t scaler_code(float value) {
  return std::isnan(value) ? 0 : static_cast<int8_t>(std::clamp(std::nearbyint(value), -128.0f, 127.0f));
}

// Returns a code; the even element of a pair is in the high nibble.
int nf4_code(std::span<const std::byte> bytes, int64_t index) { return load_nibble(bytes, index ^ 1); }

class Nf4 final : public Scheme {
 public:
  Nf4()
      : Scheme(
            {.name = "nf4_b64_s256",
             .family = "nf4",
             .summary = "NF4 weights, one int8 scaler per 64 weights, one factor per 256 scalers, one mean",
             .source = "torchao 0.18.0 NF4WeightOnlyConfig: NF4Tensor.from_tensor, get_original_weight",
             .group = kNf4Block,
             .params =
                 {.bits = 4, .element = DType::uint8, .code_max = 15, .scale = DType::int8, .levels = 2},
             .layouts = {{"plain", "torchao 0.18.0 nf4_tensor.py NF4Tensor"}}}) {}

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout)) return why_not;
    if (auto why_not = refused_size(shape)) return why_not;
    if (shape.n * shape.k % (kNf4Block * kScalerBlock))
      return "N * K = " + std::to_string(shape.n * shape.k) + " is not a multiple of 64 * 256";
    return std::nullopt;
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout) const override {
    const int64_t elems = shape.n * shape.k, blocks = elems / kNf4Block;
    return {{"quantized_data", DType::uint8, {elems / 2}},
            {"scaler_mean", shape.dtype, {}},
            {"quantization_factor", shape.dtype, {blocks / kScalerBlock}},
            {"quantized_scalers", DType::int8, {blocks}},
            {"nf4", shape.dtype, {16}}};
  }

  Planes quantize(const Matrix& weight, Layout layout) const override {
    const DType dtype = weight.dtype;
    Planes planes = make_planes(plane_specs({dtype, weight.rows, weight.cols}, layout));
    const std::vector<float> values = load_floats(dtype, weight.bytes);
    std::array<float, 16> table;
    for (size_t i = 0; i < table.size(); ++i) {
      table[i] = round_to(dtype, static_cast<float>(kTable[i]));
      store_float(dtype, planes[4].bytes, i, table[i]);
    }
    std::vector<float> scalers;
    for (size_t block = 0; block < values.size() / kNf4Block; ++block) {
      const std::span<const float> source = std::span(values).subspan(block * kNf4Block, kNf4Block);
      scalers.push_back(largest_magnitude(source));
      for (int64_t i = 0; i < kNf4Block; i += 2) {
        const uint8_t even = nearest(dtype, div_in(dtype, source[i], scalers.back()), table);
        const uint8_t odd = nearest(dtype, div_in(dtype, source[i + 1], scalers.back()), table);
        planes[0].bytes[(block * kNf4Block + i) / 2] = static_cast<std::byte>(even << 4 | odd);
      }
    }
    quantize_scalers(dtype, scalers, planes);
    return planes;
  }

  // A mean is infinite where the sum of the scalers overflows float32. A factor is 256 / (2 * the largest
  // distance from the mean): infinite for a small distance or none, and 0 for one whose double overflows.
  Written written(const WeightShape& shape, Layout, Magnitudes of) const override {
    const DType dtype = shape.dtype;
    const FloatFormat& format = float_format(dtype);
    const double blocks = static_cast<double>(shape.n * shape.k / kNf4Block);
    const double sums = std::min(of.most * blocks, double{std::numeric_limits<float>::max()});
    const double mean = round_to(dtype, static_cast<float>(sums) / static_cast<float>(blocks));
    double finite = 128 / format.max;  // the smallest distance with a finite factor, from below
    for (finite = round_to(dtype, finite * (1 - 8 * format.unit_roundoff));
         std::isinf(factor_of(dtype, static_cast<float>(finite)));)
      finite += format.unit_roundoff * std::exp2(std::floor(std::log2(finite)));
    const auto row = [&](std::string_view when, std::initializer_list<ValueRange> scalers, ValueRange factors,
                         ValueRange means) {
      WrittenCase made{
          when,
          source(),
          {{"quantized_data", {0, 15}}, {"scaler_mean", means}, {"quantization_factor", factors}}};
      for (const ValueRange& range : scalers) made.ranges.push_back({"quantized_scalers", range});
      for (int i = 0; i < 16; ++i) {
        const double entry = round_to(dtype, kTable[static_cast<size_t>(i)]);
        made.ranges.push_back({"nf4", {entry, entry}, i, 16});
      }
      return made;
    };
    Written written = {
        row("", {{-128, 127}},
            {factor_of(dtype, static_cast<float>(format.max / 2)),
             factor_of(dtype, static_cast<float>(finite))},
            {0, mean}),
        row("the scalers are near their mean", {kZero, {-128, -128}, {127, 127}}, kInfinite, {0, mean}),
        row("a scaler is far from the mean", {kZero}, kZero, {0, mean})};
    if (of.most * blocks > std::numeric_limits<float>::max())
      written.push_back(row("the sum of the scalers overflows float32", {kZero}, kZero, kInfinite));
    return written;
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    const int64_t element = row * shape.k + k;
    if (plane == "quantized_data") return element ^ 1;
    if (plane == "quantized_scalers") return element / kNf4Block;
    return plane == "quantization_factor" ? element / (kNf4Block * kScalerBlock) : 0;
  }

  double dequantized(DType dtype, const ExactWeight& w) const override {
    return mul_in(dtype, static_cast<float>(w.code), static_cast<float>(w.scale));
  }

  // torchao 0.18.0 on torch 2.13.0, CPU: nf4_tensor.py, linear: the weight is dequantized to x's dtype, then
  // linear.
  LinearStages recorded_stages(const WeightShape&, Policy, DType y) const override {
    return {.weight_cast = y, .product_cast = DType::float32, .output_cast = y};
  }

  // code is the entry of the file's table; scale is the scaler as dequantize_scalers returns it,
  // (quantized_scaler / factor) + mean, each rounded to the dtype.
  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const DType dtype = shape.dtype;
    const std::vector<std::byte>& data = plane(plain, "quantized_data").bytes;
    const std::vector<std::byte>& scalers = plane(plain, "quantized_scalers").bytes;
    const std::vector<std::byte>&table = plane(plain, "nf4").bytes,
          &factors = plane(plain, "quantization_factor").bytes;
    const float mean = static_cast<float>(load_float(dtype, plane(plain, "scaler_mean").bytes, 0));
    for (int64_t k = 0; k < shape.k; ++k) {
      const int64_t index = row * shape.k + k, block = index / kNf4Block;
      const double code = load_float(dtype, table, nf4_code(data, index));
      const float factor = static_cast<float>(load_float(dtype, factors, block / kScalerBlock));
      const float scaler = static_cast<float>(static_cast<int8_t>(scalers[block]));
      const double scale = add_in(dtype, div_in(dtype, scaler, factor), mean);
      out[k] = {.product = code * scale, .zero = 0, .code = code, .scale = scale};
    }
  }

  CodeSet codes() const override { return {{kTable.begin(), kTable.end()}, false}; }
  void row_codes(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<int> out) const override {
    for (int64_t k = 0; k < shape.k; ++k) out[k] = nf4_code(plain.front().bytes, row * shape.k + k);
  }

  std::string place(const WeightShape& shape, Layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset), size = dtype_bytes(shape.dtype);
    if (plane_name == "scaler_mean") return "the mean of the scalers";
    if (plane_name == "nf4") return "entry " + std::to_string(offset / size);
    if (plane_name == "quantized_scalers") return "block " + std::to_string(offset);
    if (plane_name == "quantization_factor") return "scaler block " + std::to_string(offset / size);
    return named_indices("row", "k", offset * 2, shape.k) + " (high nibble) and the next";
  }

 private:
  // 256 / t is t.reciprocal() * 256 in torch (torch/_tensor.py, __rtruediv__).
  static float factor_of(DType dtype, float largest) {
    return mul_in(dtype, div_in(dtype, 1.0f, mul_in(dtype, 2.0f, largest)), 256.0f);
  }

  // double_quantize_scalers
  static void quantize_scalers(DType dtype, std::span<const float> scalers, Planes& planes) {
    const float mean = mean_of(dtype, scalers);
    store_float(dtype, planes[1].bytes, 0, mean);
    std::vector<float> centred;
    for (float scaler : scalers) centred.push_back(sub_in(dtype, scaler, mean));
    for (size_t block = 0; block < centred.size() / kScalerBlock; ++block) {
      const std::span<const float> source = std::span(centred).subspan(block * kScalerBlock, kScalerBlock);
      const float factor = factor_of(dtype, largest_magnitude(source));
      store_float(dtype, planes[2].bytes, block, factor);
      for (size_t i = 0; i < source.size(); ++i)
        planes[3].bytes[block * kScalerBlock + i] =
            static_cast<std::byte>(scaler_code(mul_in(dtype, source[i], factor)));
    }
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_nf4() {
  std::vector<std::unique_ptr<Scheme>> all;
  all.push_back(std::make_unique<Nf4>());
  return all;
}

}  // namespace qcts
