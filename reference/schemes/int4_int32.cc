// int4_int32_g32 .. _g256: torchao 0.18.0 Int4PlainInt32Tensor as an Intel GPU makes it, _from_hp_xpu in
// torchao/quantization/quantize_/workflows/int4/int4_plain_int32_tensor.py: asymmetric codes 0 .. 15 of
// choose_qparams_affine and quantize_affine with eps = 1e-6, all in the weight's dtype (float16 or bfloat16),
// and an integer zero point. Scales and zero points stand in rows of groups, [k / g, n].
// Meaning: (code - zero_point) * scale, rounded once.
#include <array>

#include "reference/numerics/affine.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr double kInt4Int32LeastScale = 1e-6;

constexpr std::array<LayoutInfo, 1> kInt4Int32Layouts = {
    {{"plain",
      "torchao 0.18.0 int4_plain_int32_tensor.py: bytes with even k in the low nibble, four of them a word, "
      "as "
      "aten::_convert_weight_to_int4pack leaves them on an Intel GPU",
      false}}};

AffineRecipe recipe_of(DType dtype) {
  return {.mapping = Mapping::asymmetric,
          .code_min = 0,
          .code_max = 15,
          .least_scale = kInt4Int32LeastScale,
          .input = dtype,
          .scale = dtype};
}

int nibble_at(std::span<const std::byte> qdata, int64_t element) {
  const int byte = static_cast<int>(qdata[element / 2]);
  return element % 2 ? byte >> 4 : byte & 0xF;
}

class Int4Int32 final : public Scheme {
 public:
  explicit Int4Int32(int64_t group)
      : group_(group),
        name_("int4_int32_g" + std::to_string(group)),
        summary_("int4 weights eight a word, scale and integer zero point for each " + std::to_string(group) +
                 " along k") {}

  std::string_view name() const override { return name_; }
  std::string_view family() const override { return "int4_int32"; }
  std::string_view summary() const override { return summary_; }
  std::string_view source() const override {
    return "torchao 0.18.0 Int4WeightOnlyConfig(int4_packing_format=\"plain_int32\") on an Intel GPU: "
           "_from_hp_xpu, choose_qparams_affine, quantize_affine";
  }
  int64_t group() const override { return group_; }
  std::span<const LayoutInfo> layouts() const override { return kInt4Int32Layouts; }

  std::optional<std::string> refusal(const WeightShape& shape, std::string_view layout) const override {
    if (auto why_not = refused_type(shape, layout, {DType::float16, DType::bfloat16})) return why_not;
    return refused_size(shape, group_);
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, std::string_view) const override {
    const std::vector<int64_t> groups = {shape.k / group_, shape.n};
    return {{"qdata", DType::int32, {shape.n, shape.k / 8}},
            {"scale", shape.dtype, groups},
            {"zero_point", DType::int8, groups}};
  }

  Planes quantize(const Matrix& weight, std::string_view) const override {
    const WeightShape shape = {weight.dtype, weight.rows, weight.cols};
    Planes planes = make_planes(plane_specs(shape, "plain"));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    const AffineRecipe recipe = recipe_of(weight.dtype);
    for (int64_t b = 0; b < shape.n * shape.k / group_; ++b) {
      const std::span<const float> elements(values.data() + b * group_, static_cast<size_t>(group_));
      const AffineParameters chosen = choose_affine(recipe, elements);
      const int64_t n = b * group_ / shape.k, g = b % (shape.k / group_);
      store_float(shape.dtype, planes[1].bytes, g * shape.n + n, chosen.scale);
      planes[2].bytes[g * shape.n + n] = static_cast<std::byte>(chosen.zero_point);
      const AffineQuantizer code_of(recipe, chosen);
      for (int64_t i = 0; i < group_; ++i) {
        const int code = code_of(elements[static_cast<size_t>(i)]);
        planes[0].bytes[(b * group_ + i) / 2] |= static_cast<std::byte>(code << (i % 2 ? 4 : 0));
      }
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

  std::vector<std::byte> dequantize(const Planes& plain, const WeightShape& shape) const override {
    std::vector<std::byte> out(static_cast<size_t>(shape.n * shape.k) * dtype_bytes(shape.dtype));
    std::vector<ExactWeight> row(shape.k);
    for (int64_t n = 0; n < shape.n; ++n) {
      exact_row(plain, shape, n, row);
      for (int64_t k = 0; k < shape.k; ++k) store_float(shape.dtype, out, n * shape.k + k, row[k].product);
    }
    return out;
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, "plain"));
    const std::vector<std::byte>&qdata = plane(plain, "qdata").bytes, &scales = plane(plain, "scale").bytes;
    const std::vector<std::byte>& zeros = plane(plain, "zero_point").bytes;
    for (int64_t k = 0; k < shape.k; ++k) {
      const int64_t at = k / group_ * shape.n + row;
      const double code = nibble_at(qdata, row * shape.k + k) - static_cast<int8_t>(zeros[at]);
      const double scale = load_float(shape.dtype, scales, at);
      out[k] = {.product = code * scale, .zero = 0, .code = code, .scale = scale};
    }
  }

  CodeSet codes() const override { return integer_codes(4, false); }

  std::string place(const WeightShape& shape, std::string_view, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset);
    if (plane_name == "qdata") {
      const int64_t first = offset * 2;
      return "row " + std::to_string(first / shape.k) + ", k " + std::to_string(first % shape.k) +
             " (low nibble) and the next";
    }
    const int64_t index = plane_name == "scale" ? offset / dtype_bytes(shape.dtype) : offset;
    return "group " + std::to_string(index / shape.n) + ", row " + std::to_string(index % shape.n);
  }

 private:
  int64_t group_;
  std::string name_, summary_;
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_int4_int32() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (const int64_t group : {32, 64, 128, 256}) all.push_back(std::make_unique<Int4Int32>(group));
  return all;
}

}  // namespace qcts
