// SPDX-License-Identifier: BSD-3-Clause
// int4_tinygemm_g32, _g64, _g128: torchao 0.18.0's tinygemm recipe, _choose_qparams_affine_tinygemm and
// _quantize_affine_tinygemm of torchao/quantization/quant_primitives.py, in two producers:
//   Int4OpaqueTensor.from_hp (PrototypeInt4WeightOnlyConfig;
//       torchao/prototype/quantization/int4/int4_opaque_tensor.py): CPU packs
//   Int4TilePackedTo4dTensor.from_hp
//       (torchao/quantization/quantize_/workflows/int4/int4_tile_packed_to_4d_tensor.py): CUDA pack
// Activations: unchanged, or after x * act_pre_scale (AWQ). Codes are 0..15; a group of a row has a scale and
// a floating zero, both in the weight's dtype: w = (q - 8) * scale + zero, rounded once to the weight's
// dtype, as CUDA's __hfma2 in int4mm.cu does.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "reference/numerics/block_scales.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/pre_scale.h"
#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

constexpr float kCodeMax = 15;
constexpr float kMidPoint = 8;  // (quant_max + quant_min + 1) / 2

// The minimum scale: from_hp of Int4OpaqueTensor and int4_weight_only of torchao 0.5.0 to 0.15.0 pass eps =
// 1e-6; Int4TilePackedTo4dTensor passes none, which means torch.finfo(torch.bfloat16).smallest_normal =
// 2^-126. torch.clamp compares in the weight's dtype.
constexpr double kMinScaleOpaque = 1e-6;
constexpr double kMinScaleTilePacked = 0x1p-126;

// Int4TilePackedTo4dTensor pads K with find_multiple(K, 1024) and N with find_multiple(N, ntile_size = 8)
// before it quantizes, so the padding holds the codes, scales and zeros of zeros.
constexpr int64_t kTilePadK = 1024, kTilePadN = 8;

constexpr std::array<ActivationInfo, 2> kInt4TinygemmActivations = {
    {{kWeightOnly.name(), "x enters the sum as it is"},
     {"pre_weight_only",
      "torchao 0.18.0 linear of Int4OpaqueTensor and Int4TilePackedTo4dTensor with act_pre_scale"}}};

constexpr std::array<LayoutInfo, 6> kInt4TinygemmLayouts = {{
    {"plain",
     "torchao 0.18.0: the byte that aten::_convert_weight_to_int4pack takes, even k in the high nibble",
     true},
    {"cpu_avx512",
     "torch 2.13.0 aten/src/ATen/native/cpu/int4mm_kernel.cpp weight_to_int4pack_kernel, AVX-512", true},
    {"cpu_avx2", "torch 2.13.0 aten/src/ATen/native/cpu/int4mm_kernel.cpp weight_to_int4pack_kernel, AVX2",
     true},
    {"cpu_default",
     "torch 2.13.0 aten/src/ATen/native/cpu/int4mm_kernel.cpp weight_to_int4pack_kernel, no vectors", true},
    {"tile_packed_4d",
     "torch 2.13.0 aten/src/ATen/native/cuda/int4mm.cu matrix_to_m16n8k16_Bint4_layout, inner k tiles 8",
     false},
    {"tile_packed_4d_v1",
     "torchao 0.5.0 to 0.15.0 tensor_core_tiled_layout.py: the bytes of tile_packed_4d, the minimum scale of "
     "int4_weight_only",
     false},
}};

int64_t padded_to(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

bool is_tile(Layout layout) { return layout == "tile_packed_4d" || layout == "tile_packed_4d_v1"; }

// Returns the weight's shape as the layout stores it: padded for tile_packed_4d.
WeightShape stored_shape(const WeightShape& shape, Layout layout) {
  if (!is_tile(layout)) return shape;
  return {shape.dtype, padded_to(shape.n, kTilePadN), padded_to(shape.k, kTilePadK)};
}

// Functions ending in _nibble return the nibble index of weight [n, k]; two per byte, the low one first.
int64_t plain_nibble(const WeightShape& stored, int64_t n, int64_t k) { return (n * stored.k + k) ^ 1; }

// weight_to_int4pack_kernel: rows in blocks of four vectors of float32 (64 rows with AVX-512, 32 otherwise),
// and within a block one k after the other. Full block with vectors: row d of the lower half in the low
// nibble, row d of the upper half in the high one. The last, smaller block, and every block without vectors:
// rows in pairs, the even one low.
int64_t cpu_nibble(Layout layout, const WeightShape& stored, int64_t n, int64_t k) {
  const int64_t block_rows = layout == "cpu_avx512" ? 64 : 32;
  const int64_t first_row = n / block_rows * block_rows;
  const int64_t rows = std::min(block_rows, stored.n - first_row);
  const int64_t d = n - first_row;
  const int64_t base = first_row * stored.k + k * rows;
  if (layout != "cpu_default" && rows == block_rows) return base + d % (rows / 2) * 2 + d / (rows / 2);
  return base + d;
}

// int4mm.cu: int32 [N/8][K/128][32 lanes][4]; a word holds the codes that one lane of a warp needs for two
// m16n8k16 tensor core tiles. Nibble p of a word (bits 4p..4p+3): p % 4 selects the k tile (p % 4 / 2) and
// its upper eight (p % 2), p / 4 the odd k.
int64_t tile_nibble(const WeightShape& stored, int64_t n, int64_t k) {
  const int64_t k_outer = k / 128, k_tile = k % 128 / 16, in_tile = k % 16;
  const int64_t lane = n % 8 * 4 + in_tile % 8 / 2;
  const int64_t word = ((n / 8 * (stored.k / 128) + k_outer) * 32 + lane) * 4 + k_tile / 2;
  const int64_t p = in_tile % 2 * 4 + k_tile % 2 * 2 + in_tile / 8;
  return word * 8 + p;
}

int64_t nibble_of(Layout layout, const WeightShape& stored, int64_t n, int64_t k) {
  if (layout == kPlain) return plain_nibble(stored, n, k);
  if (is_tile(layout)) return tile_nibble(stored, n, k);
  return cpu_nibble(layout, stored, n, k);
}

// Returns the index in scale_and_zero [groups, n, 2] (pack_tinygemm_scales_and_zeros) of the scale of group g
// of row n; its zero is the next element.
size_t scale_index(const WeightShape& stored, int64_t g, int64_t n) {
  return static_cast<size_t>((g * stored.n + n) * 2);
}

struct ScaleAndZero {
  float scale = 0, zero = 0;
};

// _choose_qparams_affine_tinygemm. Every operation rounds to the weight's dtype.
ScaleAndZero choose_parameters(DType dtype, std::span<const float> group, float min_scale) {
  float low = group[0], high = group[0];
  for (float w : group) {
    if (std::isnan(w)) return {w, w};
    low = std::min(low, w);
    high = std::max(high, w);
  }
  float scale = div_in(dtype, sub_in(dtype, high, low), kCodeMax);
  if (scale < min_scale) scale = min_scale;
  return {scale, add_in(dtype, low, mul_in(dtype, scale, kMidPoint))};
}

// _quantize_affine_tinygemm: clamp(round((w - (zero - scale * 8)) / scale), 0, 15), every operation in the
// weight's dtype, round half to even. NaN becomes 0: the conversion to int32 gives 0x80000000 and the packs
// keep the low four bits.
int quantize_one(DType dtype, float w, ScaleAndZero group) {
  const float low = sub_in(dtype, group.zero, mul_in(dtype, group.scale, kMidPoint));
  const float code = std::nearbyint(div_in(dtype, sub_in(dtype, w, low), group.scale));
  if (std::isnan(code)) return 0;
  return static_cast<int>(std::clamp(code, 0.0f, kCodeMax));
}

// Returns the minimum scale in the dtype, for the producer of this layout.
float min_scale(DType dtype, Layout layout) {
  return static_cast<float>(
      round_to(dtype, layout == "tile_packed_4d" ? kMinScaleTilePacked : kMinScaleOpaque));
}

class Int4Tinygemm final : public Scheme {
 public:
  explicit Int4Tinygemm(int64_t group)
      : Scheme({.name = "int4_tinygemm_g" + std::to_string(group),
                .family = "int4_tinygemm",
                .summary = "int4 weights, with a scale and a floating-point zero per " +
                           std::to_string(group) + " elements along k",
                .source = "torchao 0.18.0 Int4OpaqueTensor.from_hp and Int4TilePackedTo4dTensor.from_hp: "
                          "_choose_qparams_affine_tinygemm, _quantize_affine_tinygemm",
                .group = group,
                .params = {.bits = 4,
                           .element = DType::uint8,
                           .code_max = 15,
                           .scale = std::nullopt,
                           .zero_point = ZeroPointKind::floating,
                           .mapping = Mapping::asymmetric},
                .layouts = {kInt4TinygemmLayouts.begin(), kInt4TinygemmLayouts.end()}}) {}

  // torch's _convert_weight_to_int4pack and _weight_int4pack_mm take groups of 32, 64, 128 and 256.
  std::unique_ptr<Scheme> with_group(int64_t length) const override {
    return length == 256 ? std::make_unique<Int4Tinygemm>(length) : nullptr;
  }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout)) return why_not;
    if (auto why_not = refused_size(shape, group())) return why_not;
    if (layout == kPlain) return std::nullopt;
    if (is_tile(layout) && shape.dtype != DType::bfloat16)
      return "tile_packed_4d takes bfloat16 weights only, not " + std::string(dtype_name(shape.dtype));
    if (!is_tile(layout) && shape.n % 16 != 0)
      return "N = " + std::to_string(shape.n) + " is not a multiple of 16, which torch's CPU packs require";
    return std::nullopt;
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout layout) const override {
    const WeightShape stored = stored_shape(shape, layout);
    const PlaneSpec scale_and_zero = {"scale_and_zero", shape.dtype, {stored.k / group(), stored.n, 2}};
    if (is_tile(layout))
      return {{"qdata", DType::int32, {stored.n / 8, stored.k / 128, 32, 4}}, scale_and_zero};
    return {{"qdata", DType::uint8, {stored.n, stored.k / 2}}, scale_and_zero};
  }

  Planes quantize(const Matrix& weight, Layout layout) const override {
    const WeightShape shape = {weight.dtype, weight.rows, weight.cols};
    Planes planes = make_planes(plane_specs(shape, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    const float min = min_scale(weight.dtype, layout);
    for (int64_t n = 0; n < shape.n; ++n) {
      for (int64_t g = 0; g < shape.k / group(); ++g) {
        const std::span<const float> elements(values.data() + n * shape.k + g * group(), group());
        const ScaleAndZero parameters = choose_parameters(weight.dtype, elements, min);
        for (int64_t i = 0; i < group(); ++i)
          put_nibble(planes[0].bytes, plain_nibble(shape, n, g * group() + i),
                     quantize_one(weight.dtype, elements[i], parameters));
        store_float(weight.dtype, planes[1].bytes, scale_index(shape, g, n), parameters.scale);
        store_float(weight.dtype, planes[1].bytes, scale_index(shape, g, n) + 1, parameters.zero);
      }
    }
    return planes;
  }

  Written written(const WeightShape& shape, Layout layout, Magnitudes of) const override {
    const float most = static_cast<float>(of.most), max = static_cast<float>(float_format(shape.dtype).max);
    const auto chosen = [&](std::initializer_list<float> group_of_weights) {
      return choose_parameters(shape.dtype, group_of_weights, min_scale(shape.dtype, layout));
    };
    const auto row = [&](std::string_view when, ValueRange codes, ValueRange scales, ValueRange zeros) {
      return WrittenCase{
          when,
          source(),
          {{"qdata", codes}, {"scale_and_zero", scales, 0, 2}, {"scale_and_zero", zeros, 1, 2}}};
    };
    const bool overflows = std::isinf(chosen({-most, most}).scale);
    const float largest = overflows ? chosen({0, max}).scale : chosen({-most, most}).scale;
    Written written = {
        row("", {0, kCodeMax}, {chosen({0}).scale, largest}, {chosen({-most}).zero, chosen({most}).zero})};
    if (overflows)
      written.push_back(row("max - min overflows the weight's type", kZero, kInfinite, kInfinite));
    return written;
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    if (plane == "qdata") return plain_nibble(shape, row, k);
    return static_cast<int64_t>(scale_index(shape, k / group(), row));
  }

  Planes pack(const Planes& plain, const WeightShape& shape, Layout layout) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const WeightShape stored = stored_shape(shape, layout);
    Planes packed = make_planes(plane_specs(shape, layout));
    const Plane& qdata = plane(plain, "qdata");
    const Plane& parameters = plane(plain, "scale_and_zero");
    // Padding: codes are 0 already; scale = min, zero = 0 + min * 8.
    const double pad_scale = min_scale(shape.dtype, layout), pad_zero = pad_scale * kMidPoint;
    for (int64_t n = 0; n < stored.n; ++n) {
      for (int64_t g = 0; g < stored.k / group(); ++g) {
        const bool real = n < shape.n && g < shape.k / group();
        const size_t from = scale_index(shape, g, n), to = scale_index(stored, g, n);
        if (real) {
          const size_t size = dtype_bytes(shape.dtype);
          std::memcpy(&packed[1].bytes[to * size], &parameters.bytes[from * size], 2 * size);
        } else {
          store_float(shape.dtype, packed[1].bytes, to, pad_scale);
          store_float(shape.dtype, packed[1].bytes, to + 1, pad_zero);
        }
      }
    }
    for (int64_t n = 0; n < shape.n; ++n)
      for (int64_t k = 0; k < shape.k; ++k)
        put_nibble(packed[0].bytes, nibble_of(layout, stored, n, k),
                   load_nibble(qdata.bytes, plain_nibble(shape, n, k)));
    return packed;
  }

  Planes unpack(const Planes& packed, const WeightShape& shape, Layout layout) const override {
    require_planes(packed, plane_specs(shape, layout));
    const WeightShape stored = stored_shape(shape, layout);
    Planes plain = make_planes(plane_specs(shape, kPlain));
    const Plane& qdata = plane(packed, "qdata");
    const Plane& parameters = plane(packed, "scale_and_zero");
    const size_t size = dtype_bytes(shape.dtype);
    for (int64_t n = 0; n < shape.n; ++n)
      for (int64_t g = 0; g < shape.k / group(); ++g)
        std::memcpy(&plain[1].bytes[scale_index(shape, g, n) * size],
                    &parameters.bytes[scale_index(stored, g, n) * size], 2 * size);
    for (int64_t n = 0; n < shape.n; ++n)
      for (int64_t k = 0; k < shape.k; ++k)
        put_nibble(plain[0].bytes, plain_nibble(shape, n, k),
                   load_nibble(qdata.bytes, nibble_of(layout, stored, n, k)));
    return plain;
  }

  // (q - 8) * scale + zero, rounded once to the logical dtype, as CUDA's __hfma2 in int4mm.cu does.
  double dequantized(DType dtype, const ExactWeight& w) const override {
    return fma_in(dtype, w.code, w.scale, w.zero);
  }

  // aten::_weight_int4pack_mm_for_cpu of torch 2.13.0 (aten/src/ATen/native/cpu/int4mm_kernel.cpp): weights
  // are formed and summed in float32; the sum is rounded to y's dtype; then the linear of torchao 0.18.0's
  // Int4OpaqueTensor adds the bias.
  LinearStages recorded_stages(const WeightShape&, Policy, DType y) const override {
    return {.weight_cast = DType::float32, .product_cast = DType::float32, .output_cast = y};
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const std::vector<std::byte>& qdata = plane(plain, "qdata").bytes;
    const std::vector<std::byte>& parameters = plane(plain, "scale_and_zero").bytes;
    for (int64_t k = 0; k < shape.k; ++k) {
      const size_t index = scale_index(shape, k / group(), row);
      const double code = load_nibble(qdata, plain_nibble(shape, row, k)) - 8;
      const double scale = load_float(shape.dtype, parameters, index);
      out[k] = {.product = code * scale,
                .zero = load_float(shape.dtype, parameters, index + 1),
                .code = code,
                .scale = scale};
    }
  }

  std::span<const ActivationInfo> activations() const override { return kInt4TinygemmActivations; }
  std::vector<PlaneSpec> policy_specs(const WeightShape& shape, Policy activation) const override {
    if (!is_pre_scaled(activation)) return {};
    return {pre_scale_spec(shape)};
  }
  std::vector<WrittenRange> policy_ranges(const WeightShape& shape, Policy activation) const override {
    if (!is_pre_scaled(activation)) return {};
    return {pre_scale_range(shape)};
  }
  std::vector<PlaneSpec> activation_specs(const Matrix& x, Policy activation) const override {
    if (!is_pre_scaled(activation)) return Scheme::activation_specs(x, activation);
    return {{"x", x.dtype, {x.rows, x.cols}}};
  }
  Planes quantize_activation(const Matrix& x, Policy activation, const Planes& weight) const override {
    if (!is_pre_scaled(activation)) return Scheme::quantize_activation(x, activation, weight);
    return {{"x", x.dtype, {x.rows, x.cols}, pre_scaled(x, weight)}};
  }
  void exact_activation(const Planes& planes, const Matrix& x, Policy activation, int64_t row,
                        std::span<double> out) const override {
    require_planes(planes, activation_specs(x, activation));
    for (int64_t k = 0; k < x.cols; ++k) out[k] = load_float(x.dtype, planes.front().bytes, row * x.cols + k);
  }

  CodeSet codes() const override { return integer_codes(4, false); }
  void row_codes(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<int> out) const override {
    for (int64_t k = 0; k < shape.k; ++k)
      out[k] = load_nibble(plain.front().bytes, plain_nibble(shape, row, k));
  }

  std::string place(const WeightShape& shape, Layout layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const WeightShape stored = stored_shape(shape, layout);
    const int64_t offset = static_cast<int64_t>(byte_offset);
    if (plane_name == "scale_and_zero") {
      const int64_t index = offset / dtype_bytes(shape.dtype);
      return named_indices("group", "column", index / 2, stored.n) +
             (index % 2 == 0 ? " (scale)" : " (zero)");
    }
    return named_nibbles(shape, stored, offset,
                         [&](int64_t n, int64_t k) { return nibble_of(layout, stored, n, k); });
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_int4_tinygemm() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (int64_t group : {32, 64, 128}) all.push_back(std::make_unique<Int4Tinygemm>(group));
  return all;
}

}  // namespace qcts
