// SPDX-License-Identifier: BSD-3-Clause
// int4_plain_g32 .. _g256: torchao 0.18.0 Int4Tensor.from_hp
// (torchao/quantization/quantize_/workflows/int4/int4_tensor.py), the default of Int4WeightOnlyConfig. The
// recipe is MSLK's int4_row_quantize_zp (fbgemm_gpu 1.4.2 experimental/gen_ai quantize.py has the same
// function): in float32, a group of a row has scale max(max - min, 1e-6) / 15 and zero = min + 8 * scale;
// code = clamp(round((w - min) / scale), 0, 15) - 8. Scale and zero are then rounded to the weight's dtype.
// int4_plain_sym_g32 .. : Float8DynamicActivationInt4WeightConfig(int4_packing_format="plain"), MSLK's
// int4_row_quantize: scale = max(max |w|, 1e-6) / 8, code = clamp(round(w / scale), -8, 7), zero = 0.
// Meaning: code * scale + zero, rounded once. That config quantizes x by MSLK's quantize_fp8_row, float8.h's
// dyn_row_mslk.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reference/numerics/block_scales.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/float8.h"

namespace qcts {
namespace {

constexpr float kMinRange = 1e-6f;

constexpr std::array<LayoutInfo, 2> kInt4PlainLayouts = {{
    {"plain", "torchao 0.18.0 int4_tensor.py Int4Tensor; MSLK pack_int4: even k in the low nibble", true},
    {"preshuffled_bf16",
     "MSLK csrc/gemm/cutlass/mixed_dtype_utils.cu preshuffle_i4 for bfloat16 activations, by CUTLASS's "
     "layout "
     "of the tensor core's operand",
     false},
}};

constexpr std::array<ActivationInfo, 2> kInt4PlainPolicies = {
    {{kWeightOnly.name(), "torchao 0.18.0 int4_tensor.py, linear: activation_dtype bfloat16"},
     {"dyn_row_mslk",
      "torchao 0.18.0 int4_tensor.py, linear: activation_dtype float8_e4m3fn; MSLK 0017d3d fp8_quantize.py, "
      "_kernel_quantize_fp8_row; by source, not confirmed on hardware"}}};

bool is_shuffled(Layout layout) { return layout == "preshuffled_bf16"; }

// Returns the index of weight [n, k] in the packed codes; two per byte, the even one low. Preshuffled: tiles
// of 16 rows and 16 columns, n fastest; in a tile each of 32 lanes t = (k % 8) / 2 + 4 * (n % 8) has eight
// consecutive codes: bit 0 is n % 16 / 8, bit 1 is k % 16 / 8, bit 2 is k % 2.
int64_t nibble_in(Layout layout, const WeightShape& shape, int64_t n, int64_t k) {
  if (!is_shuffled(layout)) return n * shape.k + k;
  const int64_t tile = k / 16 * ((shape.n + 15) / 16) + n / 16;
  const int64_t lane = k % 8 / 2 + 4 * (n % 8);
  return tile * 256 + lane * 8 + k % 2 * 4 + k % 16 / 8 * 2 + n % 16 / 8;
}

int code_at(std::span<const std::byte> qdata, int64_t element) {
  const int nibble = load_nibble(qdata, element);
  return nibble >= 8 ? nibble - 16 : nibble;
}

struct GroupParameters {
  float scale = 0, zero = 0;  // float32, as used for the codes
  float min = 0;
};

GroupParameters choose_parameters(std::span<const float> group, bool symmetric) {
  float low = group[0], high = group[0];
  for (float w : group) {
    if (std::isnan(w)) return {w, symmetric ? 0 : w, symmetric ? 0 : w};
    low = std::min(low, w);
    high = std::max(high, w);
  }
  if (symmetric) {
    const float scale = std::max(std::max(std::fabs(low), std::fabs(high)), kMinRange) / 8;
    return {scale, 0, 0};
  }
  const float scale = std::max(high - low, kMinRange) / 15;
  return {scale, low + scale * 8, low};
}

struct StoredParameters {
  double scale = 0, zero = 0;  // as stored
};

int quantize_one(float w, GroupParameters group, bool symmetric) {
  const float steps = std::nearbyint((w - group.min) / group.scale);
  if (std::isnan(steps)) return 0;
  if (symmetric) return static_cast<int>(std::clamp(steps, -8.0f, 7.0f));
  return static_cast<int>(std::clamp(steps, 0.0f, 15.0f)) - 8;
}

class Int4Plain final : public Float8RowsOfX {
 public:
  Int4Plain(int64_t group, bool symmetric)
      : Float8RowsOfX(
            {.name = (symmetric ? "int4_plain_sym_g" : "int4_plain_g") + std::to_string(group),
             .family = "int4_plain",
             .summary = "int4 weights, " +
                        std::string(symmetric ? "with a scale and a zero of 0"
                                              : "with a scale and a floating-point zero") +
                        " per " + std::to_string(group) + " elements along k, one row of them per group",
             .source = symmetric
                           ? "torchao 0.18.0 Float8DynamicActivationInt4WeightConfig: Int4Tensor.from_hp, "
                             "MSLK int4_row_quantize, pack_int4"
                           : "torchao 0.18.0 Int4WeightOnlyConfig: Int4Tensor.from_hp, MSLK "
                             "int4_row_quantize_zp, pack_int4",
             .group = group,
             .params = {.bits = 4,
                        .code_min = -8,
                        .code_max = 7,
                        .scale = std::nullopt,
                        .zero_point = ZeroPointKind::floating,
                        .mapping = symmetric ? Mapping::symmetric : Mapping::asymmetric},
             .meaning = "int4_plain_g" + std::to_string(group),
             .layouts = {kInt4PlainLayouts.begin(), kInt4PlainLayouts.end()}}),
        symmetric_(symmetric) {}

  // The recipe for bfloat16 x has floating zeros, the one for float8 x none.
  std::span<const ActivationInfo> activations() const override {
    return std::span(kInt4PlainPolicies).first(symmetric_ ? 2 : 1);
  }

  std::unique_ptr<Scheme> with_group(int64_t length) const override {
    return std::make_unique<Int4Plain>(length, symmetric_);
  }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout)) return why_not;
    if (auto why_not = refused_size(shape, group())) return why_not;
    if (is_shuffled(layout) && shape.n % 16 != 0)
      return "N = " + std::to_string(shape.n) + " is not a multiple of 16, the rows of a tile";
    return std::nullopt;
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout) const override {
    const std::vector<int64_t> groups = {shape.k / group(), shape.n};
    return {{"qdata", DType::int8, {shape.n, shape.k / 2}},
            {"scale", shape.dtype, groups},
            {"zero_point", shape.dtype, groups}};
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    const WeightShape shape = {weight.dtype, weight.rows, weight.cols};
    Planes planes = make_planes(plane_specs(shape, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    for (int64_t n = 0; n < shape.n; ++n) {
      for (int64_t g = 0; g < shape.k / group(); ++g) {
        const std::span<const float> elements(values.data() + n * shape.k + g * group(), group());
        const GroupParameters chosen = choose_parameters(elements, symmetric_);
        for (int64_t i = 0; i < group(); ++i)
          put_nibble(planes[0].bytes, nibble_in(kPlain, shape, n, g * group() + i),
                     quantize_one(elements[i], chosen, symmetric_));
        store_float(shape.dtype, planes[1].bytes, g * shape.n + n, chosen.scale);
        store_float(shape.dtype, planes[2].bytes, g * shape.n + n, chosen.zero);
      }
    }
    return planes;
  }

  Written written(const WeightShape& shape, Layout, Magnitudes of) const override {
    const float most = static_cast<float>(of.most), max = std::numeric_limits<float>::max();
    const auto chosen = [&](std::initializer_list<float> weights) {
      const GroupParameters group = choose_parameters(weights, symmetric_);
      return StoredParameters{round_to(shape.dtype, group.scale), round_to(shape.dtype, group.zero)};
    };
    const auto row = [&](std::string_view when, ValueRange codes, ValueRange scales, ValueRange zeros) {
      return WrittenCase{when, source(), {{"qdata", codes}, {"scale", scales}, {"zero_point", zeros}}};
    };
    const float least = symmetric_ ? static_cast<float>(of.least) : 0;  // a constant group has no span
    StoredParameters widest = chosen({-most, most});
    const bool overflows = std::isinf(widest.scale);
    if (overflows) widest = chosen({0, max});
    Written written = {
        row("", {-8, 7}, {chosen({least}).scale, widest.scale}, {chosen({-most}).zero, chosen({most}).zero})};
    if (overflows) {
      written.push_back(row("max - min overflows float32", {-8, -8}, kInfinite, kInfinite));
      written.push_back(row("max - min and w - min overflow float32", kZero, kInfinite, kInfinite));
    }
    return written;
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    return plane == "qdata" ? nibble_in(kPlain, shape, row, k) : k / group() * shape.n + row;
  }

  Planes pack(const Planes& plain, const WeightShape& shape, Layout layout) const override {
    return moved(plain, shape, kPlain, layout);
  }
  Planes unpack(const Planes& packed, const WeightShape& shape, Layout layout) const override {
    return moved(packed, shape, layout, kPlain);
  }

  double dequantized(DType dtype, const ExactWeight& w) const override {
    return fma_in(dtype, w.code, w.scale, w.zero);
  }

  // Under dyn_row_mslk: MSLK's f8i4bf16_rowwise (recorded with exact sums instead). Weights are formed in
  // their scale's dtype (a rounding counted with the products here), then rounded to float8; the sum times
  // x's scale is rounded to bfloat16, then the bias is added.
  LinearStages recorded_stages(const WeightShape& weight, Policy activation, DType y) const override {
    if (activation != "dyn_row_mslk") return Scheme::recorded_stages(weight, activation, y);
    return {
        .weight_cast = DType::float8_e4m3fn, .product_cast = weight.dtype, .output_cast = DType::bfloat16};
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const std::vector<std::byte>& qdata = plane(plain, "qdata").bytes;
    const std::vector<std::byte>&scales = plane(plain, "scale").bytes,
          &zeros = plane(plain, "zero_point").bytes;
    for (int64_t k = 0; k < shape.k; ++k) {
      const double code = code_at(qdata, nibble_in(kPlain, shape, row, k));
      const double scale = load_float(shape.dtype, scales, k / group() * shape.n + row);
      out[k] = {.product = code * scale,
                .zero = load_float(shape.dtype, zeros, k / group() * shape.n + row),
                .code = code,
                .scale = scale};
    }
  }

  CodeSet codes() const override { return integer_codes(4, true); }

  std::string place(const WeightShape& shape, Layout layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset);
    if (plane_name != "qdata")
      return named_indices("group", "row", offset / dtype_bytes(shape.dtype), shape.n);
    return named_nibbles(shape, shape, offset,
                         [&](int64_t n, int64_t k) { return nibble_in(layout, shape, n, k); });
  }

 private:
  Planes moved(const Planes& planes, const WeightShape& shape, Layout from, Layout to) const {
    require_planes(planes, plane_specs(shape, from));
    Planes out = planes;
    Plane& codes = out.front();
    std::fill(codes.bytes.begin(), codes.bytes.end(), std::byte{0});
    for (int64_t n = 0; n < shape.n; ++n)
      for (int64_t k = 0; k < shape.k; ++k)
        put_nibble(codes.bytes, nibble_in(to, shape, n, k),
                   code_at(plane(planes, "qdata").bytes, nibble_in(from, shape, n, k)));
    return out;
  }

  bool symmetric_;
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_int4_plain() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (const bool symmetric : {false, true})
    for (const int64_t group : {32, 64, 128, 256})
      all.push_back(std::make_unique<Int4Plain>(group, symmetric));
  return all;
}

}  // namespace qcts
