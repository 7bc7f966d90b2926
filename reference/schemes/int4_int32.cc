// SPDX-License-Identifier: BSD-3-Clause
// int4_int32_g32 .. _g256: torchao 0.18.0 Int4PlainInt32Tensor as an Intel GPU makes it, _from_hp_xpu in
// torchao/quantization/quantize_/workflows/int4/int4_plain_int32_tensor.py: asymmetric codes 0 .. 15 of
// choose_qparams_affine and quantize_affine with eps = 1e-6, all in the weight's dtype (float16 or bfloat16),
// and an integer zero point. Scales and zero points are in rows of groups, [k / g, n]. Meaning: (code -
// zero_point) * scale, rounded once.
#include "reference/numerics/affine.h"
#include "reference/numerics/block_scales.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr double kInt4Int32MinScale = 1e-6;

AffineRecipe recipe_of(DType dtype) {
  return {.mapping = Mapping::asymmetric,
          .code_min = 0,
          .code_max = 15,
          .min_scale = kInt4Int32MinScale,
          .input = dtype,
          .scale = dtype};
}

class Int4Int32 final : public Scheme {
 public:
  explicit Int4Int32(int64_t group)
      : Scheme(
            {.name = "int4_int32_g" + std::to_string(group),
             .family = "int4_int32",
             .summary = "int4 weights, eight to a word, with a scale and an integer zero point per " +
                        std::to_string(group) + " elements along k",
             .source = "torchao 0.18.0 Int4WeightOnlyConfig(int4_packing_format=\"plain_int32\") on an Intel "
                       "GPU: _from_hp_xpu, choose_qparams_affine, quantize_affine",
             .group = group,
             .params = {.bits = 4,
                        .element = DType::uint8,
                        .code_max = 15,
                        .scale = std::nullopt,
                        .zero_point = ZeroPointKind::integer,
                        .mapping = Mapping::asymmetric},
             .layouts = {{"plain",
                          "torchao 0.18.0 int4_plain_int32_tensor.py: bytes with even k in the low nibble, "
                          "four to a word, as aten::_convert_weight_to_int4pack leaves them on an Intel "
                          "GPU",
                          false}}}) {}

  std::unique_ptr<Scheme> with_group(int64_t length) const override {
    return std::make_unique<Int4Int32>(length);
  }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout, {DType::float16, DType::bfloat16})) return why_not;
    return refused_size(shape, group());
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout) const override {
    const std::vector<int64_t> groups = {shape.k / group(), shape.n};
    return {{"qdata", DType::int32, {shape.n, shape.k / 8}},
            {"scale", shape.dtype, groups},
            {"zero_point", DType::int8, groups}};
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    const WeightShape shape = {weight.dtype, weight.rows, weight.cols};
    Planes planes = make_planes(plane_specs(shape, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    const AffineRecipe recipe = recipe_of(weight.dtype);
    for (int64_t b = 0; b < shape.n * shape.k / group(); ++b) {
      const std::span<const float> elements(values.data() + b * group(), static_cast<size_t>(group()));
      const AffineParameters chosen = choose_affine(recipe, elements);
      const int64_t n = b * group() / shape.k, g = b % (shape.k / group());
      store_float(shape.dtype, planes[1].bytes, g * shape.n + n, chosen.scale);
      planes[2].bytes[g * shape.n + n] = static_cast<std::byte>(chosen.zero_point);
      const AffineQuantizer code_of(recipe, chosen);
      for (int64_t i = 0; i < group(); ++i)
        put_nibble(planes[0].bytes, b * group() + i, code_of(elements[static_cast<size_t>(i)]));
    }
    return planes;
  }

  Written written(const WeightShape& shape, Layout, Magnitudes of) const override {
    return written_affine(recipe_of(shape.dtype), of, source());
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    return plane == "qdata" ? row * shape.k + k : k / group() * shape.n + row;
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const std::vector<std::byte>&qdata = plane(plain, "qdata").bytes, &scales = plane(plain, "scale").bytes;
    const std::vector<std::byte>& zeros = plane(plain, "zero_point").bytes;
    for (int64_t k = 0; k < shape.k; ++k) {
      const int64_t at = k / group() * shape.n + row;
      const double code = load_nibble(qdata, row * shape.k + k) - static_cast<int8_t>(zeros[at]);
      const double scale = load_float(shape.dtype, scales, at);
      out[k] = {.product = code * scale, .zero = 0, .code = code, .scale = scale};
    }
  }

  CodeSet codes() const override { return integer_codes(4, false); }

  std::string place(const WeightShape& shape, Layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset);
    if (plane_name == "qdata")
      return named_indices("row", "k", offset * 2, shape.k) + " (low nibble) and the next";
    const int64_t index = plane_name == "scale" ? offset / dtype_bytes(shape.dtype) : offset;
    return named_indices("group", "row", index, shape.n);
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_int4_int32() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (const int64_t group : {32, 64, 128, 256}) all.push_back(std::make_unique<Int4Int32>(group));
  return all;
}

}  // namespace qcts
