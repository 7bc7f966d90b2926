// int8_row: torchao 0.18.0 Int8WeightOnlyConfig(version=2, granularity=PerRow()), i.e. Int8Tensor.from_hp in
// torchao/quantization/quantize_/workflows/int8/int8_tensor.py, with choose_qparams_affine and
// quantize_affine of torchao/quantization/quant_primitives.py. Symmetric, one float32 scale a row, and a zero
// point that is always 0 and always stored.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

// from_hp: quant_min, quant_max = -128, 127; _choose_qparams_affine: scale = max|w| / ((quant_max -
// quant_min) / 2).
constexpr float kHalfRange = 127.5f;
constexpr float kCodeMin = -128, kCodeMax = 127;
// from_hp: eps = torch.finfo(torch.float32).eps = 2^-23, for every input dtype; exact in float16 (as a
// subnormal) and bfloat16.
constexpr float kLeastScale = 0x1p-23f;

constexpr std::array<LayoutInfo, 1> kLayouts = {
    {{"plain", "torchao 0.18.0 int8_tensor.py Int8Tensor", true}}};

// torch.amin/amax, then max(-min(amin, 0), max(amax, 0)): the largest magnitude, NaN if the row holds one.
float largest_magnitude(std::span<const float> row) {
  float largest = 0;
  for (float w : row) {
    if (std::isnan(w)) return w;
    largest = std::max(largest, std::fabs(w));
  }
  return largest;
}

// Division and clamp in the weight's own dtype, then .to(float32): a float32 scale of a bfloat16 weight is a
// bfloat16 number.
float choose_scale(DType dtype, std::span<const float> row) {
  const float scale = div_in(dtype, largest_magnitude(row), kHalfRange);
  return scale < kLeastScale ? kLeastScale : scale;  // torch.clamp keeps NaN
}

// quantize_affine: clamp(round(w * (1.0 / scale)) + zero_point, -128, 127), in float32 because scale is
// float32; round half to even. NaN becomes 0: the conversion float32 -> int8 goes through int32, whose
// indefinite value 0x80000000 has a low byte of 0.
int8_t quantize_one(float w, float reciprocal) {
  const float rounded = std::nearbyint(w * reciprocal);
  if (std::isnan(rounded)) return 0;
  return static_cast<int8_t>(std::clamp(rounded, kCodeMin, kCodeMax));
}

class Int8Row final : public Scheme {
 public:
  std::string_view name() const override { return "int8_row"; }
  std::string_view family() const override { return "int8_row"; }
  std::string_view summary() const override { return "int8 weights, one float32 scale a row, symmetric"; }
  std::string_view source() const override {
    return "torchao 0.18.0 Int8WeightOnlyConfig(version=2): Int8Tensor.from_hp, choose_qparams_affine, "
           "quantize_affine";
  }
  int64_t group() const override { return 0; }
  std::span<const LayoutInfo> layouts() const override { return kLayouts; }

  std::optional<std::string> refusal(const WeightShape& shape, std::string_view layout) const override {
    if (!find_layout(layout)) return "int8_row has no layout " + std::string(layout);
    if (shape.dtype != DType::float32 && shape.dtype != DType::float16 && shape.dtype != DType::bfloat16)
      return "int8_row takes float32, float16 and bfloat16 weights, not " +
             std::string(dtype_name(shape.dtype));
    if (shape.n < 1 || shape.k < 1) return "int8_row takes no empty weight";
    return std::nullopt;
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, std::string_view) const override {
    return {{"qdata", DType::int8, {shape.n, shape.k}},
            {"scale", DType::float32, {shape.n, 1}},
            {"zero_point", DType::int8, {shape.n, 1}}};
  }

  Planes quantize(const Matrix& weight, std::string_view) const override {
    Planes planes = make_planes(plane_specs({weight.dtype, weight.rows, weight.cols}, "plain"));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    for (int64_t n = 0; n < weight.rows; ++n) {
      const std::span<const float> row(values.data() + n * weight.cols, weight.cols);
      const float scale = choose_scale(weight.dtype, row);
      const float reciprocal = 1.0f / scale;
      for (int64_t k = 0; k < weight.cols; ++k)
        planes[0].bytes[n * weight.cols + k] = static_cast<std::byte>(quantize_one(row[k], reciprocal));
      store_float(DType::float32, planes[1].bytes, n, scale);
    }
    return planes;
  }

  Planes pack(const Planes& plain, const WeightShape& shape, std::string_view layout) const override {
    require_planes(plain, plane_specs(shape, layout));
    return plain;
  }
  Planes unpack(const Planes& packed, const WeightShape& shape, std::string_view layout) const override {
    require_planes(packed, plane_specs(shape, layout));
    return packed;
  }

  // Int8Tensor.dequantize -> dequantize_affine: (q - zero_point) in the logical dtype, where it is exact (|q
  // - zero_point| <= 255); times the float32 scale, which promotes to float32; then the cast to the logical
  // dtype.
  std::vector<std::byte> dequantize(const Planes& plain, const WeightShape& shape) const override {
    std::vector<std::byte> out(static_cast<size_t>(shape.n * shape.k) * dtype_bytes(shape.dtype));
    std::vector<ExactWeight> row(shape.k);
    for (int64_t n = 0; n < shape.n; ++n) {
      exact_row(plain, shape, n, row);
      for (int64_t k = 0; k < shape.k; ++k) {
        const float product = static_cast<float>(row[k].code) * static_cast<float>(row[k].scale);
        store_float(shape.dtype, out, n * shape.k + k, product);
      }
    }
    return out;
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, "plain"));
    const std::vector<std::byte>& qdata = plane(plain, "qdata").bytes;
    const double scale = load_float(DType::float32, plane(plain, "scale").bytes, row);
    const int zero_point = static_cast<int8_t>(plane(plain, "zero_point").bytes[row]);
    for (int64_t k = 0; k < shape.k; ++k) {
      const double code = static_cast<int8_t>(qdata[row * shape.k + k]) - zero_point;
      out[k] = {.product = code * scale, .zero = 0, .code = code, .scale = scale};
    }
  }

  std::string place(const WeightShape& shape, std::string_view, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset);
    if (plane_name == "scale") return "row " + std::to_string(offset / 4);
    if (plane_name == "zero_point") return "row " + std::to_string(offset);
    return "row " + std::to_string(offset / shape.k) + ", k " + std::to_string(offset % shape.k);
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_int8_row() {
  std::vector<std::unique_ptr<Scheme>> all;
  all.push_back(std::make_unique<Int8Row>());
  return all;
}

}  // namespace qcts
