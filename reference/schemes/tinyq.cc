// SPDX-License-Identifier: BSD-3-Clause
// tinyq: TinyQ at commit 006b7b9 (tinyq.py, utils.py), two schemes.
//   tinyq_w8a32  W8A32LinearLayer: linear_q_symmetric_per_channel in float32, for any dtype of the weight;
//                forward: linear(x, q * s) + b, all in float32
//   tinyq_w8a16  W8A16LinearLayer: scales in the weight's dtype, codes without a clamp;
//                forward: linear(x, q) * s + b in x's dtype
// Both symmetric with max|w| / 127, one scale per row. W8A32's zero points are int32 zeros that its forward
// never reads (it passes z_w=0). Meaning: q * s, rounded once to the scales' dtype; W8A16 never forms its
// weight, but its forward implies this.
#include <algorithm>
#include <cmath>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr float kTinyqCodeMax = 127;  // torch.iinfo(torch.int8).max
constexpr float kCodeMin = -128;

// tensor.abs().max(): NaN if the row contains one.
float row_maximum(std::span<const float> row) {
  float largest = 0;
  for (float w : row) {
    if (std::isnan(w)) return w;
    largest = std::max(largest, std::fabs(w));
  }
  return largest;
}

// .to(torch.int8) of a rounded float: goes through int32 and keeps its low byte. What int32 cannot represent,
// NaN included, becomes 0x80000000 (cvttss2si), so 0.
int8_t wrapped_code(float rounded) {
  if (!(rounded >= -0x1p31f && rounded < 0x1p31f)) return 0;
  return static_cast<int8_t>(static_cast<uint32_t>(static_cast<int32_t>(rounded)));
}

class Tinyq : public Scheme {
 public:
  explicit Tinyq(SchemeInfo info) : Scheme(std::move(info)) {}

  CodeSet codes() const override { return integer_codes(8, true); }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (!find_layout(layout.name()))
      return std::string(name()) + " has no layout " + std::string(layout.name());
    if (!takes(shape.dtype))
      return std::string(name()) + " has no weights of " + std::string(dtype_name(shape.dtype));
    if (shape.n < 1 || shape.k < 1) return std::string(name()) + " cannot take an empty weight";
    return std::nullopt;
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const std::vector<std::byte>& codes = plane(plain, "int8_weights").bytes;
    const double scale = load_float(shape.dtype, plane(plain, "scales").bytes, row);
    for (int64_t k = 0; k < shape.k; ++k) {
      const double code = static_cast<int8_t>(codes[row * shape.k + k]);
      out[k] = {.product = code * scale, .zero = 0, .code = code, .scale = scale};
    }
  }

  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    return plane == "int8_weights" ? row * shape.k + k : row;
  }

  std::string place(const WeightShape& shape, Layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset);
    if (plane_name == "scales") return "row " + std::to_string(offset / dtype_bytes(shape.dtype));
    if (plane_name == "zero_points") return "row " + std::to_string(offset / 4);
    return named_indices("row", "k", offset, shape.k);
  }

 protected:
  virtual bool takes(DType dtype) const = 0;
};

class W8A32 final : public Tinyq {
 public:
  W8A32()
      : Tinyq({.name = "tinyq_w8a32",
               .family = "tinyq",
               .summary =
                   "TinyQ: int8 weights, one float32 scale per row, unused zero points; linear(x, q * s) + "
                   "b in float32",
               .source = "TinyQ 006b7b9 W8A32LinearLayer.quantize: linear_q_symmetric_per_channel",
               .params = {.code_min = -128, .code_max = 127, .zero_point = ZeroPointKind::integer},
               .layouts = {{"plain", "TinyQ 006b7b9 tinyq.py W8A32LinearLayer"}}}) {}

  bool takes(DType dtype) const override { return dtype == DType::float32; }

  // A scale that rounds to 0 divides weights to infinity, which is clamped, and 0 to NaN. A subnormal scale
  // that was rounded down gives codes beyond 127.
  Written written(const WeightShape&, Layout, Magnitudes of) const override {
    const double least = scale_of(static_cast<float>(of.least));
    const WrittenRange zeros = {"zero_points", kZero};
    Written written = {{"",
                        source(),
                        {{"int8_weights", {kCodeMin, kTinyqCodeMax}},
                         {"scales",
                          {least > 0 ? least : float_format(DType::float32).min_subnormal,
                           scale_of(static_cast<float>(of.most))}},
                         zeros}}};
    if (least == 0)
      written.push_back({"the scale is 0",
                         "tinyq_zero_row",
                         {{"int8_weights", kZero},
                          {"int8_weights", {kCodeMin, kCodeMin}},
                          {"int8_weights", {kTinyqCodeMax, kTinyqCodeMax}},
                          {"scales", kZero},
                          zeros}});
    return written;
  }

  // TinyQ 006b7b9, w8_a32_forward: q.float() * s in float32, F.linear, then + bias.
  LinearStages recorded_stages(const WeightShape&, Policy, DType y) const override {
    return {.weight_cast = DType::float32, .product_cast = DType::float32, .output_cast = y};
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout) const override {
    return {{"int8_weights", DType::int8, {shape.n, shape.k}},
            {"scales", DType::float32, {shape.n}},
            {"zero_points", DType::int32, {shape.n}}};
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    Planes planes = make_planes(plane_specs({weight.dtype, weight.rows, weight.cols}, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    for (int64_t n = 0; n < weight.rows; ++n) {
      const std::span<const float> row(values.data() + n * weight.cols, weight.cols);
      const float scale = scale_of(row_maximum(row));
      store_float(DType::float32, planes[1].bytes, n, scale);
      for (int64_t k = 0; k < weight.cols; ++k) {
        const float rounded = std::nearbyint(row[k] / scale + 0.0f);
        planes[0].bytes[n * weight.cols + k] = static_cast<std::byte>(
            wrapped_code(std::isnan(rounded) ? rounded : std::clamp(rounded, kCodeMin, kTinyqCodeMax)));
      }
    }
    return planes;
  }

 private:
  // r_max / q_max on Python floats, then stored in a float32 tensor.
  static float scale_of(float largest) { return static_cast<float>(static_cast<double>(largest) / 127.0); }
};

class W8A16 final : public Tinyq {
 public:
  W8A16()
      : Tinyq({.name = "tinyq_w8a16",
               .family = "tinyq",
               .summary =
                   "TinyQ: int8 weights without a clamp, one scale per row; linear(x, q) * s + b in x's "
                   "dtype",
               .source = "TinyQ 006b7b9 W8A16LinearLayer.quantize",
               .params = {.code_min = -128, .code_max = 127, .scale = std::nullopt, .codes_wrap = true},
               .layouts = {{"plain", "TinyQ 006b7b9 tinyq.py W8A16LinearLayer"}}}) {}

  bool takes(DType dtype) const override {
    return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
  }

  // TinyQ 006b7b9, w8_a16_forward: F.linear(x, q.to(x.dtype)) has x's dtype; then times the scales and +
  // bias, each rounded to it.
  LinearStages recorded_stages(const WeightShape&, Policy, DType y) const override {
    return {.scale_cast = y,
            .product_cast = DType::float32,
            .partial_cast = y,
            .output_cast = y,
            .scale_after_sum = true};
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout) const override {
    return {{"int8_weights", DType::int8, {shape.n, shape.k}}, {"scales", shape.dtype, {shape.n}}};
  }

  // Where the scale is 0, every quotient is infinite or NaN, whose int8 is 0.
  Written written(const WeightShape& shape, Layout, Magnitudes of) const override {
    const auto scale = [&](double largest) -> double {
      return round_to(shape.dtype, static_cast<float>(largest) / kTinyqCodeMax);
    };
    const double least = scale(of.least);
    Written written = {
        {"",
         source(),
         {{"int8_weights", {kCodeMin, kTinyqCodeMax}},
          {"scales", {least > 0 ? least : float_format(shape.dtype).min_subnormal, scale(of.most)}}}}};
    if (least == 0)
      written.push_back({"the scale is 0", "tinyq_zero_row", {{"int8_weights", kZero}, {"scales", kZero}}});
    return written;
  }

  // Choice tinyq_w8a16_no_clamp: if the dtype rounds the scale down, the row's largest weight becomes 128,
  // which wraps to -128.
  Planes quantize(const Matrix& weight, Layout) const override {
    Planes planes = make_planes(plane_specs({weight.dtype, weight.rows, weight.cols}, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    for (int64_t n = 0; n < weight.rows; ++n) {
      const std::span<const float> row(values.data() + n * weight.cols, weight.cols);
      const float scale = round_to(weight.dtype, row_maximum(row) / kTinyqCodeMax);
      store_float(weight.dtype, planes[1].bytes, n, scale);
      for (int64_t k = 0; k < weight.cols; ++k) {
        const float rounded = std::nearbyint(div_in(weight.dtype, row[k], scale));
        planes[0].bytes[n * weight.cols + k] = static_cast<std::byte>(wrapped_code(rounded));
      }
    }
    return planes;
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_tinyq() {
  std::vector<std::unique_ptr<Scheme>> all;
  all.push_back(std::make_unique<W8A32>());
  all.push_back(std::make_unique<W8A16>());
  return all;
}

}  // namespace qcts
