// SPDX-License-Identifier: BSD-3-Clause
// fp8_e4m3_tensor, fp8_e4m3_block128, fp8_e4m3_g32 .. _g128, and their e5m2 siblings with fp8_e5m2_row: one
// scale for the whole weight, per 128 x 128, per group along k, per row. float8.h declares the class.
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/float8.h"

namespace qcts {
namespace {

constexpr std::array<LayoutInfo, 2> kFp8Layouts = {
    {{"plain", "torchao 0.18.0 float8_tensor.py Float8Tensor", true},
     {"mslk", "MSLK 0017d3d quantize/triton/fp8_quantize.py, the \"mslk\" choice of Float8Tensor.from_hp",
      false}}};

constexpr std::string_view kFromHp =
    "torchao 0.18.0 float8_tensor.py, _float8_addmm_impl: Float8Tensor.from_hp(x)";
constexpr std::string_view kFp8Static =
    "torchao 0.18.0 prototype_float8_tensor.py, _float8_addmm_impl: from_hp(x, scale=act_quant_scale)";
constexpr std::string_view kMslk =
    "MSLK 0017d3d fp8_quantize.py, _kernel_quantize_fp8_row; by source, not confirmed on hardware";
constexpr std::string_view kRecip =
    "torchao 0.7.0 to 0.11.0 quant_api.py, _input_activation_quant_func_fp8, _float8_cutlass_quant";
constexpr std::string_view kFbgemm =
    "torchao 0.11.0 to 0.15.0 FbgemmFp8Tensor: fbgemm_gpu quantize.cu, dynamicQuantizeMatrixRowwise; by "
    "source, not confirmed on hardware";
constexpr ActivationInfo kAlone = {kWeightOnly.name(), "torchao 0.18.0 Float8WeightOnlyConfig"};
// torchao pairs each granularity of the weight with the same of x (_normalize_granularity, and quantize_'s
// own checks).
constexpr std::array<ActivationInfo, 5> kRowPolicies = {{kAlone,
                                                         {"dyn_row", kFromHp},
                                                         {"dyn_row_recip", kRecip},
                                                         {"dyn_row_mslk", kMslk},
                                                         {"dyn_row_fbgemm", kFbgemm}}};
constexpr std::array<ActivationInfo, 6> kTensorPolicies = {{kAlone,
                                                            {"dyn_tensor", kFromHp},
                                                            {"static_tensor", kFp8Static},
                                                            {"static_tensor_out", kFp8Static},
                                                            {"dyn_tensor_recip", kRecip},
                                                            {"static_tensor_recip", kRecip}}};
constexpr std::array<ActivationInfo, 2> kBlockPolicies = {{kAlone, {"dyn_block128", kFromHp}}};

// The blocks of a [rows, cols] matrix.
struct Blocks {
  int64_t rows, cols;              // size of the matrix
  int64_t block_rows, block_cols;  // size of a block
  Blocks(int64_t n, int64_t k, int64_t r, int64_t c)
      : rows(n), cols(k), block_rows(r ? r : n), block_cols(c ? c : k) {}
  int64_t down() const { return rows / block_rows; }
  int64_t across() const { return cols / block_cols; }
  int64_t of(int64_t row, int64_t col) const { return row / block_rows * across() + col / block_cols; }
};

// Returns max |x| of each block, in row-major order.
std::vector<float> block_magnitudes(const Blocks& blocks, std::span<const float> values) {
  std::vector<float> largest(blocks.down() * blocks.across(), 0.0f);
  for (int64_t r = 0; r < blocks.rows; ++r) {
    for (int64_t c = 0; c < blocks.cols; ++c) {
      float& block = largest[blocks.of(r, c)];
      const std::array<float, 2> both = {block, values[r * blocks.cols + c]};
      block = largest_magnitude(both);
    }
  }
  return largest;
}

// Stores the codes of x under its blocks' scales; `code_of`: float8_code or float8_code_by_reciprocal.
void store_codes(const Blocks& blocks, DType code, std::span<const float> values,
                 std::span<const float> scales, Plane& qdata,
                 uint8_t (*code_of)(DType, float, float) = float8_code) {
  for (int64_t r = 0; r < blocks.rows; ++r)
    for (int64_t c = 0; c < blocks.cols; ++c)
      qdata.bytes[r * blocks.cols + c] =
          static_cast<std::byte>(code_of(code, values[r * blocks.cols + c], scales[blocks.of(r, c)]));
}

void store_scales(std::span<const float> scales, Plane& plane) {
  for (size_t i = 0; i < scales.size(); ++i) store_float(DType::float32, plane.bytes, i, scales[i]);
}

const Plane* find_plane(const Planes& planes, std::string_view name) {
  for (const Plane& candidate : planes)
    if (candidate.name == name) return &candidate;
  return nullptr;
}

std::optional<double> parameter(const Planes& weight, std::string_view name) {
  const Plane* found = find_plane(weight, name);
  return found ? std::optional(load_float(found->dtype, found->bytes, 0)) : std::nullopt;
}

int64_t activation_rows(Policy activation, const Matrix& x) {
  return activation.name().starts_with("dyn_tensor") || activation.name().starts_with("static_tensor")
             ? x.rows
             : 1;
}

int64_t activation_cols(Policy activation, const Matrix& x) {
  return activation == "dyn_block128" ? 128 : x.cols;
}

Blocks activation_blocks(const Matrix& x, Policy activation) {
  return Blocks(x.rows, x.cols, activation_rows(activation, x), activation_cols(activation, x));
}

}  // namespace

Float8Scheme::Float8Scheme(Float8Parameters p)
    : Scheme({.name = p.name,
              .family = p.family,
              .summary = p.summary,
              .source = "torchao 0.18.0 Float8WeightOnlyConfig: Float8Tensor.from_hp, _choose_scale_float8, "
                        "_quantize_affine_float8",
              .group = p.block_cols,
              .params = {.element = p.code, .group_rows = p.block_rows},
              .layouts = {kFp8Layouts.begin(), kFp8Layouts.end() - (p.has_floored_recipe ? 0 : 1)}}),
      p_(std::move(p)) {}

std::optional<std::string> Float8Scheme::refusal(const WeightShape& shape, Layout layout) const {
  if (auto why_not = refused_type(shape, layout)) return why_not;
  if (auto why_not = refused_size(shape)) return why_not;
  if (p_.block_rows != 0 && shape.n % p_.block_rows != 0)
    return "N = " + std::to_string(shape.n) + " is not a multiple of the block's " +
           std::to_string(p_.block_rows);
  return refused_size(shape, p_.block_cols, "the block's ");
}

std::vector<PlaneSpec> Float8Scheme::plane_specs(const WeightShape& shape, Layout) const {
  const Blocks blocks(shape.n, shape.k, p_.block_rows, p_.block_cols);
  return {{"qdata", p_.code, {shape.n, shape.k}},
          {"scale", DType::float32, {blocks.down(), blocks.across()}}};
}

std::vector<PlaneSpec> Float8Scheme::policy_specs(const WeightShape&, Policy activation) const {
  std::vector<PlaneSpec> specs;
  if (activation.name().starts_with("static_tensor"))
    specs.push_back({"act_quant_scale", DType::float32, {1, 1}});
  if (activation == "static_tensor_out") specs.push_back({"output_act_quant_scale", DType::float32, {1, 1}});
  if (activation == "dyn_row_fbgemm") specs.push_back({"activation_scale_ub", DType::float32, {1}});
  return specs;
}

Planes Float8Scheme::quantize(const Matrix& weight, Layout layout) const {
  Planes planes = make_planes(plane_specs({weight.dtype, weight.rows, weight.cols}, layout));
  const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
  const Blocks blocks(weight.rows, weight.cols, p_.block_rows, p_.block_cols);
  std::vector<float> scales = block_magnitudes(blocks, values);
  for (float& scale : scales)
    scale = layout == "mslk" ? float8_scale_floored(scale) : float8_scale(weight.dtype, p_.code, scale);
  store_codes(blocks, p_.code, values, scales, planes[0]);
  store_scales(scales, planes[1]);
  return planes;
}

// Choice fp8_zero_row_nan: where a scale is 0, a weight of 0 is 0/0, and the others overflow and are clamped.
// The smallest other scale is the smallest number of the weight's type. layout "mslk": float8_scale_floored.
Written Float8Scheme::written(const WeightShape& shape, Layout layout, Magnitudes of) const {
  const double max = float_format(p_.code).max;
  const auto scale = [&](double largest) -> double {
    return layout == "mslk" ? float8_scale_floored(static_cast<float>(largest))
                            : float8_scale(shape.dtype, p_.code, static_cast<float>(largest));
  };
  const double least = scale(of.least);
  Written written = {
      {"",
       source(),
       {{"qdata", {-max, max}},
        {"scale", {least > 0 ? least : float_format(shape.dtype).min_subnormal, scale(of.most)}}}}};
  if (least == 0)
    written.push_back({"the scale is 0",
                       "fp8_zero_row_nan",
                       {{"qdata", {max, max, true}}, {"qdata", {-max, -max}}, {"scale", kZero}}});
  return written;
}

int64_t Float8Scheme::element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                                 int64_t k) const {
  if (plane == "qdata") return row * shape.k + k;
  return Blocks(shape.n, shape.k, p_.block_rows, p_.block_cols).of(row, k);
}

// A calibration finds a scale as quantize_activation finds those of a dynamic policy (by
// float8_scale_at_least in torchao's first generation), and the bound is the user's: torchao 0.18.0
// float8_static_quant, PrototypeFloat8Tensor; torchao 0.13.0 FbgemmConfig(activation_scale_ub).
std::vector<WrittenRange> Float8Scheme::policy_ranges(const WeightShape& shape, Policy activation) const {
  const float max = static_cast<float>(float_format(shape.dtype).max);
  const bool floored = activation.name().ends_with("_recip");
  const auto scale = [&](float largest) -> double {
    return floored ? float8_scale_at_least(shape.dtype, p_.code, largest)
                   : float8_scale(shape.dtype, p_.code, largest);
  };
  const ValueRange scales = {scale(0), scale(max)};
  std::vector<WrittenRange> ranges;
  if (activation.name().starts_with("static_tensor")) ranges.push_back({"act_quant_scale", scales});
  if (activation == "static_tensor_out") ranges.push_back({"output_act_quant_scale", scales});
  if (activation == "dyn_row_fbgemm")
    ranges.push_back({"activation_scale_ub",
                      {float_format(DType::float32).min_subnormal, float_format(DType::float32).max}});
  return ranges;
}

void Float8Scheme::exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                             std::span<ExactWeight> out) const {
  require_planes(plain, plane_specs(shape, kPlain));
  const std::vector<std::byte>& qdata = plane(plain, "qdata").bytes;
  const std::vector<std::byte>& scales = plane(plain, "scale").bytes;
  const Blocks blocks(shape.n, shape.k, p_.block_rows, p_.block_cols);
  for (int64_t k = 0; k < shape.k; ++k) {
    const double code = load_float(p_.code, qdata, row * shape.k + k);
    const double scale = load_float(DType::float32, scales, blocks.of(row, k));
    out[k] = {.product = code * scale, .zero = 0, .code = code, .scale = scale};
  }
}

std::span<const ActivationInfo> Float8Scheme::activations() const {
  if (p_.block_rows == 0) return kTensorPolicies;
  if (p_.block_rows == 128) return kBlockPolicies;
  // MSLK's and fbgemm's kernels make e4m3 only; groups along k are for weights only.
  const size_t known = p_.block_cols != 0 ? 1 : p_.code == DType::float8_e4m3fn ? kRowPolicies.size() : 3;
  return std::span<const ActivationInfo>(kRowPolicies).first(known);
}

std::vector<PlaneSpec> Float8Scheme::activation_specs(const Matrix& x, Policy activation) const {
  require_policy(activation);
  if (x.cols % activation_cols(activation, x))
    throw std::invalid_argument("K = " + std::to_string(x.cols) + " is not a multiple of 128");
  const Blocks blocks = activation_blocks(x, activation);
  return {{"qdata", p_.code, {x.rows, x.cols}}, {"scale", DType::float32, {blocks.down(), blocks.across()}}};
}

// Returns the scale of a block of x with this largest magnitude.
float Float8Scheme::activation_scale(DType x, Policy activation, const Planes& weight, float largest) const {
  const auto stored = [&](std::string_view name) {
    return static_cast<float>(load_float(DType::float32, plane(weight, name).bytes, 0));
  };
  const std::optional<double> upper = parameter(weight, "hp_value_ub");
  if (activation.name().starts_with("static_tensor")) return stored("act_quant_scale");
  if (activation.name().ends_with("_recip")) return float8_scale_at_least(x, p_.code, largest);
  if (activation == "dyn_row_fbgemm")
    return float8_scale_bounded(p_.code, largest, stored("activation_scale_ub"));
  if (activation == "dyn_row_mslk")
    return float8_scale_floored(largest, upper ? std::optional(static_cast<float>(*upper)) : std::nullopt);
  return float8_scale(x, p_.code, largest, {parameter(weight, "hp_value_lb"), upper});
}

Planes Float8Scheme::quantize_activation(const Matrix& x, Policy activation, const Planes& weight) const {
  Planes planes = make_planes(activation_specs(x, activation));
  const std::vector<float> values = load_floats(x.dtype, x.bytes);
  const Blocks blocks = activation_blocks(x, activation);
  std::vector<float> scales = block_magnitudes(blocks, values);
  for (float& scale : scales) scale = activation_scale(x.dtype, activation, weight, scale);
  store_codes(blocks, p_.code, values, scales, planes[0],
              activation.name().ends_with("_recip") ? float8_code_by_reciprocal : float8_code);
  store_scales(scales, planes[1]);
  return planes;
}

void Float8Scheme::exact_activation(const Planes& planes, const Matrix& x, Policy activation, int64_t row,
                                    std::span<double> out) const {
  require_planes(planes, activation_specs(x, activation));
  const Blocks blocks = activation_blocks(x, activation);
  for (int64_t k = 0; k < x.cols; ++k)
    out[k] = load_float(p_.code, plane(planes, "qdata").bytes, row * x.cols + k) *
             load_float(DType::float32, plane(planes, "scale").bytes, blocks.of(row, k));
}

// torchao 0.18.0 on torch 2.13.0, CPU: float8_tensor.py, linear. Weight only: the weight is dequantized to
// x's dtype, then mm and + bias. e4m3 with scales by row or tensor, and x the same: torch._scaled_mm, times
// both scales; it adds the bias of narrow types itself.
LinearStages Float8Scheme::recorded_stages(const WeightShape& weight, Policy activation, DType y) const {
  if (activation == kWeightOnly) return {.weight_cast = y, .product_cast = DType::float32, .output_cast = y};
  const bool of_row = p_.code == DType::float8_e4m3fn && p_.block_rows == 1 &&
                      (activation == "dyn_row" || activation == "dyn_row_recip");
  const bool of_all = p_.block_rows == 0 && activation != "static_tensor_out";
  if (!of_row && !of_all) return Scheme::recorded_stages(weight, activation, y);
  LinearStages stages{
      .x_cast = DType::float32, .weight_cast = DType::float32, .product_cast = DType::float32};
  if (y == DType::float32) stages.output_cast = y;
  return stages;
}

std::string Float8Scheme::place(const WeightShape& shape, Layout, std::string_view plane_name,
                                uint64_t byte_offset) const {
  const int64_t offset = static_cast<int64_t>(byte_offset);
  const Blocks blocks(shape.n, shape.k, p_.block_rows, p_.block_cols);
  if (plane_name == "act_quant_scale") return "the activation's scale";
  if (plane_name == "output_act_quant_scale") return "the output's scale";
  if (plane_name == "activation_scale_ub") return "the activation's upper bound";
  if (plane_name != "scale") return named_indices("row", "k", offset, shape.k);
  const int64_t row = offset / 4 / blocks.across() * blocks.block_rows;
  if (blocks.across() == 1) return "row " + std::to_string(row);
  return "row " + std::to_string(row) + ", k " +
         std::to_string(offset / 4 % blocks.across() * blocks.block_cols);
}

Float8RowsOfX::Float8RowsOfX(SchemeInfo info)
    : Scheme(info), x_({.name = info.name, .family = info.family, .summary = info.summary}) {}

std::vector<PlaneSpec> Float8RowsOfX::activation_specs(const Matrix& x, Policy activation) const {
  require_policy(activation);
  return x_.activation_specs(x, activation);
}

Planes Float8RowsOfX::quantize_activation(const Matrix& x, Policy activation, const Planes& weight) const {
  require_policy(activation);
  return x_.quantize_activation(x, activation, weight);
}

void Float8RowsOfX::exact_activation(const Planes& planes, const Matrix& x, Policy activation, int64_t row,
                                     std::span<double> out) const {
  require_policy(activation);
  x_.exact_activation(planes, x, activation, row, out);
}

namespace {

// `blocks` ends the name, `what` the summary.
std::unique_ptr<Scheme> fp8_scheme(DType code, const std::string& blocks, const std::string& what,
                                   int64_t rows, int64_t cols) {
  const std::string type = code == DType::float8_e5m2 ? "e5m2" : "e4m3";
  return std::make_unique<Float8Scheme>(
      Float8Parameters{.name = "fp8_" + type + "_" + blocks,
                       .family = "fp8",
                       .summary = std::string(dtype_name(code)) + " weights, one float32 scale " + what,
                       .code = code,
                       .block_rows = rows,
                       .block_cols = cols});
}

std::unique_ptr<Scheme> fp8_of_groups(DType code, int64_t length) {
  const std::string text = std::to_string(length);
  return fp8_scheme(code, "g" + text, "per " + text + " elements along k", 1, length);
}

std::unique_ptr<Scheme> fp8_of_blocks(DType code, int64_t side) {
  const std::string text = std::to_string(side);
  return fp8_scheme(code, "block" + text, "per " + text + " x " + text + " block", side, side);
}

}  // namespace

std::unique_ptr<Scheme> Float8Scheme::with_group(int64_t length) const {
  return p_.block_rows > 1 ? fp8_of_blocks(p_.code, length) : fp8_of_groups(p_.code, length);
}

std::vector<std::unique_ptr<Scheme>> make_fp8() {
  std::vector<std::unique_ptr<Scheme>> all;
  for (DType code : {DType::float8_e4m3fn, DType::float8_e5m2}) {
    if (code == DType::float8_e5m2) all.push_back(fp8_scheme(code, "row", "per row", 1, 0));
    all.push_back(fp8_scheme(code, "tensor", "for the tensor", 0, 0));
    all.push_back(fp8_of_blocks(code, 128));
    for (const int64_t length : {32, 64, 128}) all.push_back(fp8_of_groups(code, length));
  }
  return all;
}

}  // namespace qcts
