// fp8_row: torchao 0.18.0 Float8WeightOnlyConfig(weight_dtype=torch.float8_e4m3fn, granularity=PerRow()),
// i.e. Float8Tensor.from_hp in torchao/quantization/quantize_/workflows/float8/float8_tensor.py on its
// "torch" path (the one without MSLK on Hopper), with _choose_scale_float8, _quantize_affine_float8 and
// _dequantize_affine_float8 of torchao/quantization/quant_primitives.py.
//
// Ledger choice fp8_zero_row_nan: that path has no least scale, so a row of zeros has scale 0 and codes 0/0 =
// NaN (pytorch/ao issue 4713). We write what the library writes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr float kLargestCode = 448.0f;  // torch.finfo(torch.float8_e4m3fn).max

constexpr std::array<LayoutInfo, 1> kLayouts = {
    {{"plain", "torchao 0.18.0 float8_tensor.py Float8Tensor", true}}};

// tensor.abs().amax(): NaN if the row holds one.
float largest_magnitude(std::span<const float> row) {
  float largest = 0;
  for (float w : row) {
    if (std::isnan(w)) return w;
    largest = std::max(largest, std::fabs(w));
  }
  return largest;
}

// _quantize_affine_float8: w.float() / scale, clamp to +-448, cast. The quotient of 0/0 and Inf/Inf is NaN;
// its sign bit is set, as on the x86 processors that write the goldens (Intel SDM volume 1, 4.8.3.7: the
// default NaN is negative).
uint8_t quantize_one(float w, float scale) {
  const float quotient = w / scale;
  if (std::isnan(quotient)) {
    const bool negative = std::isnan(w) ? std::signbit(w) : std::isnan(scale) ? std::signbit(scale) : true;
    return negative ? 0xFF : 0x7F;
  }
  return static_cast<uint8_t>(
      encode_float(DType::float8_e4m3fn, std::clamp(quotient, -kLargestCode, kLargestCode)));
}

class Fp8Row final : public Scheme {
 public:
  std::string_view name() const override { return "fp8_row"; }
  std::string_view family() const override { return "fp8_row"; }
  std::string_view summary() const override { return "float8_e4m3fn weights, one float32 scale a row"; }
  std::string_view source() const override {
    return "torchao 0.18.0 Float8WeightOnlyConfig: Float8Tensor.from_hp, _choose_scale_float8, "
           "_quantize_affine_float8";
  }
  int64_t group() const override { return 0; }
  std::span<const LayoutInfo> layouts() const override { return kLayouts; }

  std::optional<std::string> refusal(const WeightShape& shape, std::string_view layout) const override {
    if (!find_layout(layout)) return "fp8_row has no layout " + std::string(layout);
    if (shape.dtype != DType::float32 && shape.dtype != DType::float16 && shape.dtype != DType::bfloat16)
      return "fp8_row takes float32, float16 and bfloat16 weights, not " +
             std::string(dtype_name(shape.dtype));
    if (shape.n < 1 || shape.k < 1) return "fp8_row takes no empty weight";
    return std::nullopt;
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, std::string_view) const override {
    return {{"qdata", DType::float8_e4m3fn, {shape.n, shape.k}}, {"scale", DType::float32, {shape.n, 1}}};
  }

  // _choose_scale_float8: max|w| / 448 in the weight's own dtype (a float16 scale can be subnormal or 0),
  // then .to(float32).
  Planes quantize(const Matrix& weight, std::string_view) const override {
    Planes planes = make_planes(plane_specs({weight.dtype, weight.rows, weight.cols}, "plain"));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    for (int64_t n = 0; n < weight.rows; ++n) {
      const std::span<const float> row(values.data() + n * weight.cols, weight.cols);
      const float scale = div_in(weight.dtype, largest_magnitude(row), kLargestCode);
      for (int64_t k = 0; k < weight.cols; ++k)
        planes[0].bytes[n * weight.cols + k] = static_cast<std::byte>(quantize_one(row[k], scale));
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

  // _dequantize_affine_float8: code.float() * scale in float32, then the cast to the logical dtype.
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
    for (int64_t k = 0; k < shape.k; ++k) {
      const double code = load_float(DType::float8_e4m3fn, qdata, row * shape.k + k);
      out[k] = {.product = code * scale, .zero = 0, .code = code, .scale = scale};
    }
  }

  std::string place(const WeightShape& shape, std::string_view, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset);
    if (plane_name == "scale") return "row " + std::to_string(offset / 4);
    return "row " + std::to_string(offset / shape.k) + ", k " + std::to_string(offset % shape.k);
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_fp8_row() {
  std::vector<std::unique_ptr<Scheme>> all;
  all.push_back(std::make_unique<Fp8Row>());
  return all;
}

}  // namespace qcts
