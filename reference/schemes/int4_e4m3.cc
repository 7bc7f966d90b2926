// SPDX-License-Identifier: BSD-3-Clause
// int4_e4m3_g128, _g256: torchao 0.18.0 Float8DynamicActivationInt4WeightConfig in its default packing,
// Int4PreshuffledTensor.from_hp(activation_dtype=float8_e4m3fn) of
// torchao/quantization/quantize_/workflows/int4/int4_preshuffled_tensor.py. The recipe is MSLK 0017d3d
// mslk/quantize/shuffle.py, quantize_int4_preshuffle(dtype="fp8"): a row becomes float8 with one float32
// scale (quantize_fp8_row), and these float8 numbers v, in float32, become int4 with a scale per group:
// max(max |v|, 1e-6) / 8, code = clamp(round(v / scale), -8, 7). The group's scale is then rounded to e4m3.
// Meaning: e4m3(code * scale) * row scale; the first factor is rounded because a file stores it as a table of
// the eight negative codes; float32, then the weight's dtype.
//
// "preshuffled_fp8": MSLK csrc/gemm/cutlass/mixed_dtype_utils.cu, fp8_preshuffle_i4, and CUTLASS
// tools/util/include/cutlass/util/mixed_dtype_utils.hpp. A nibble is the sign and the index into the table,
// so 1 .. 7 are stored as 7 .. 1 (unified_encode_int4b). scale is declared [k / g, 8, n], and its bytes are
// the tables e4m3(scale * -8) .. e4m3(scale * -1) of row after row (pack_scale_fp8).
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "reference/numerics/block_scales.h"
#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/float8.h"

namespace qcts {
namespace {

constexpr DType kE4m3 = DType::float8_e4m3fn;
constexpr float kMinE4m3Range = 1e-6f;
constexpr int kTableEntries = 8;

constexpr std::array<LayoutInfo, 2> kInt4E4m3Layouts = {
    {{"plain", "codes in two's complement, even k in the low nibble, one scale per group; no producer's",
      true},
     {"preshuffled_fp8",
      "MSLK csrc/gemm/cutlass/mixed_dtype_utils.cu fp8_preshuffle_i4, by CUTLASS's layout of the tensor "
      "core's "
      "operand",
      false}}};

constexpr std::array<ActivationInfo, 2> kInt4E4m3Policies = {
    {{kWeightOnly.name(), "no producer's"},
     {"dyn_row_mslk",
      "torchao 0.18.0 int4_preshuffled_tensor.py, linear; MSLK 0017d3d fp8_quantize.py, "
      "_kernel_quantize_fp8_row; by source, not confirmed on hardware"}}};

// Returns the nibble index of weight [n, k]; two per byte, the even one low. Preshuffled: tiles of 16 rows
// and 32 columns, n fastest; in a tile each of 32 lanes t = (k % 16) / 4 + 4 * (n % 8) has sixteen
// consecutive codes: bits 0 and 1 are k % 4, bit 2 is n % 16 / 8, bit 3 is k % 32 / 16.
int64_t nibble_place(bool shuffled, const WeightShape& shape, int64_t n, int64_t k) {
  if (!shuffled) return n * shape.k + k;
  const int64_t tile = k / 32 * (shape.n / 16) + n / 16;
  const int64_t lane = k % 16 / 4 + 4 * (n % 8);
  return tile * 512 + lane * 16 + k % 4 + n % 16 / 8 * 4 + k % 32 / 16 * 8;
}

int int4_of(int nibble, bool shuffled) {
  if (nibble >= 8) return nibble - 16;
  return shuffled && nibble > 0 ? 8 - nibble : nibble;
}

int nibble_of(int code, bool shuffled) { return shuffled && code > 0 ? 8 - code : code & 0xF; }

int int4_at(std::span<const std::byte> qdata, int64_t place, bool shuffled) {
  return int4_of(load_nibble(qdata, place), shuffled);
}

void put_int4(std::span<std::byte> qdata, int64_t place, int code, bool shuffled) {
  put_nibble(qdata, place, nibble_of(code, shuffled));
}

// Returns e4m3(code * scale); 0 stays 0 for any scale.
double table_value(int code, double scale) {
  if (code == 0) return 0;
  const double max = float_format(kE4m3).max;
  return round_to(kE4m3, std::isnan(scale) ? scale : std::clamp(code * scale, -max, max));
}

class Int4E4m3 final : public Float8RowsOfX {
 public:
  explicit Int4E4m3(int64_t group)
      : Float8RowsOfX(
            {.name = "int4_e4m3_g" + std::to_string(group),
             .family = "int4_e4m3",
             .summary = "int4 weights, one float8_e4m3fn scale per " + std::to_string(group) +
                        " elements along k, one float32 scale per row",
             .source = "torchao 0.18.0 Float8DynamicActivationInt4WeightConfig: "
                       "Int4PreshuffledTensor.from_hp, MSLK quantize_int4_preshuffle",
             .group = group,
             .params = {.bits = 4, .code_min = -8, .code_max = 7, .scale = DType::float8_e4m3fn, .levels = 2},
             .layouts = {kInt4E4m3Layouts.begin(), kInt4E4m3Layouts.end()}}) {}

  std::span<const ActivationInfo> activations() const override { return kInt4E4m3Policies; }

  std::unique_ptr<Scheme> with_group(int64_t length) const override {
    return std::make_unique<Int4E4m3>(length);
  }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout)) return why_not;
    if (auto why_not = refused_size(shape, group())) return why_not;
    if (layout != kPlain && shape.n % 16 != 0)
      return "N = " + std::to_string(shape.n) + " is not a multiple of 16, the rows of a tile";
    return std::nullopt;
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout layout) const override {
    std::vector<int64_t> scales = {shape.k / group(), shape.n};
    if (layout != kPlain) scales.insert(scales.begin() + 1, kTableEntries);
    return {{"qdata", DType::int8, {shape.n, shape.k / 2}},
            {"scale", kE4m3, scales},
            {"row_scale", DType::float32, {shape.n}}};
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    const WeightShape shape = {weight.dtype, weight.rows, weight.cols};
    Planes planes = make_planes(plane_specs(shape, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    std::vector<float> row(static_cast<size_t>(shape.k));
    for (int64_t n = 0; n < shape.n; ++n) {
      const std::span<const float> given = std::span(values).subspan(n * shape.k, shape.k);
      const float row_scale = float8_scale_floored(largest_magnitude(given));
      for (int64_t k = 0; k < shape.k; ++k)
        row[k] = static_cast<float>(decode_float(kE4m3, float8_code(kE4m3, given[k], row_scale)));
      for (int64_t g = 0; g < shape.k / group(); ++g)
        store_float(kE4m3, planes[1].bytes, g * shape.n + n,
                    quantize_group(std::span(row).subspan(g * group(), group()), n * shape.k + g * group(),
                                   planes[0].bytes));
      store_float(DType::float32, planes[2].bytes, n, row_scale);
    }
    return planes;
  }

  // The largest of a group's float8 numbers divided by 8, which e4m3 rounds to 0 below 2^-10; its codes are
  // kept.
  Written written(const WeightShape&, Layout, Magnitudes of) const override {
    return {{"",
             source(),
             {{"qdata", {-8, 7}},
              {"scale", {0, float_format(kE4m3).max / 8}},
              {"row_scale",
               {float8_scale_floored(static_cast<float>(of.least)),
                float8_scale_floored(static_cast<float>(of.most))}}}}};
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    if (plane == "row_scale") return row;
    return plane == "qdata" ? nibble_place(false, shape, row, k) : k / group() * shape.n + row;
  }

  Planes pack(const Planes& plain, const WeightShape& shape, Layout layout) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    if (layout == kPlain) return plain;
    Planes packed = make_planes(plane_specs(shape, layout));
    move_codes(plain[0], false, packed[0], true, shape);
    for (int64_t i = 0; i < shape.k / group() * shape.n; ++i)
      for (int entry = 0; entry < kTableEntries; ++entry)
        store_float(kE4m3, packed[1].bytes, i * kTableEntries + entry,
                    table_value(entry - kTableEntries, load_float(kE4m3, plain[1].bytes, i)));
    packed[2].bytes = plain[2].bytes;
    return packed;
  }

  // Throws std::invalid_argument for a table that no scale produces.
  Planes unpack(const Planes& packed, const WeightShape& shape, Layout layout) const override {
    require_planes(packed, plane_specs(shape, layout));
    if (layout == kPlain) return packed;
    Planes plain = make_planes(plane_specs(shape, kPlain));
    move_codes(packed[0], true, plain[0], false, shape);
    for (size_t i = 0; i < plain[1].bytes.size(); ++i)  // the last entry is the scale times -1
      plain[1].bytes[i] = packed[1].bytes[i * kTableEntries + kTableEntries - 1] ^ std::byte{0x80};
    plain[2].bytes = packed[2].bytes;
    if (const auto differs = first_difference(pack(plain, shape, layout)[1], packed[1]))
      throw std::invalid_argument("scale: " + place(shape, layout, "scale", *differs) +
                                  ": its table does not follow from its last entry");
    return plain;
  }

  // Under dyn_row_mslk: MSLK's f8i4bf16_shuffled (recorded with exact sums instead). Sums of float8 products,
  // times both scales in float32; rounded to bfloat16; then the bias is added.
  LinearStages recorded_stages(const WeightShape& weight, Policy activation, DType y) const override {
    if (activation != "dyn_row_mslk") return Scheme::recorded_stages(weight, activation, y);
    return {.output_cast = DType::bfloat16, .scale_after_sum = true};
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const double row_scale = load_float(DType::float32, plane(plain, "row_scale").bytes, row);
    for (int64_t k = 0; k < shape.k; ++k) {
      const int code = int4_at(plane(plain, "qdata").bytes, nibble_place(false, shape, row, k), false);
      const double value =
          table_value(code, load_float(kE4m3, plane(plain, "scale").bytes, k / group() * shape.n + row));
      out[k] = {.product = value * row_scale, .zero = 0, .code = value, .scale = row_scale};
    }
  }

  // The value of a code depends on its group.
  CodeSet codes() const override { return {integer_codes(4, true).values, false}; }

  std::string place(const WeightShape& shape, Layout layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset);
    if (plane_name == "row_scale") return "row " + std::to_string(offset / 4);
    if (plane_name == "scale") {
      const int64_t index = layout == kPlain ? offset : offset / kTableEntries;
      return named_indices("group", "row", index, shape.n);
    }
    return named_nibbles(shape, shape, offset,
                         [&](int64_t n, int64_t k) { return nibble_place(layout != kPlain, shape, n, k); });
  }

 private:
  // Returns the scale of a group of float8 numbers, and stores their codes from `first` on.
  float quantize_group(std::span<const float> numbers, int64_t first, std::span<std::byte> qdata) const {
    const float largest = largest_magnitude(numbers);
    const float scale = (largest < kMinE4m3Range ? kMinE4m3Range : largest) / 8;
    for (int64_t i = 0; i < group(); ++i) {
      const float steps = std::nearbyint(numbers[i] / scale);
      if (!std::isnan(steps))
        put_int4(qdata, first + i, static_cast<int>(std::clamp(steps, -8.0f, 7.0f)), false);
    }
    return scale;
  }

  static void move_codes(const Plane& from, bool was_shuffled, Plane& to, bool shuffled,
                         const WeightShape& shape) {
    for (int64_t n = 0; n < shape.n; ++n)
      for (int64_t k = 0; k < shape.k; ++k)
        put_int4(to.bytes, nibble_place(shuffled, shape, n, k),
                 int4_at(from.bytes, nibble_place(was_shuffled, shape, n, k), was_shuffled), shuffled);
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_int4_e4m3() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (const int64_t group : {128, 256}) all.push_back(std::make_unique<Int4E4m3>(group));
  return all;
}

}  // namespace qcts
