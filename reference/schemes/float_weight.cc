// SPDX-License-Identifier: BSD-3-Clause
// float_weight: the weight as it is, under an x that is quantized: pytorch/ao#2338, torchao 0.12.0 and 0.13.0
// LinearActivationQuantizedTensor(weight, to_fbgemm_fp8, {"activation_scale_ub": bound}).
//
// No torchao runs this layer: to_fbgemm_fp8 makes x a FbgemmFp8Tensor, whose own linear expects one for the
// weight and fails on a plain tensor (AttributeError, also with the kernels of a GPU). So there is no y to
// compare with. The rules are those of the two functions that it names, by source: x becomes float8 with one
// scale per row, as fbgemm's quantize_fp8_per_row makes it with the bound that to_fbgemm_fp8 keeps with it
// (float8.h, dyn_row_fbgemm), and y is the sum of x and the weight.
#include <array>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/float8.h"

namespace qcts {
namespace {

constexpr std::array<LayoutInfo, 1> kFloatWeightLayouts = {
    {{"plain", "torchao 0.13.0 linear_activation_quantized_tensor.py, original_weight_tensor"}}};

constexpr std::array<ActivationInfo, 1> kFloatWeightPolicies = {
    {{"dyn_row_fbgemm",
      "torchao 0.13.0 fbgemm_fp8_tensor.py, to_fbgemm_fp8; fbgemm_gpu quantize.cu, "
      "dynamicQuantizeMatrixRowwise; by source, not confirmed on hardware"}}};

class FloatWeight final : public Float8RowsOfX {
 public:
  FloatWeight()
      : Float8RowsOfX(
            {.name = "float_weight",
             .family = "float_weight",
             .summary = "the weight unchanged; x becomes float8_e4m3fn, one clamped float32 scale per row",
             .source = "pytorch/ao#2338: LinearActivationQuantizedTensor with to_fbgemm_fp8; by source",
             .params = {.bits = 32, .element = std::nullopt, .scale = std::nullopt},
             .layouts = {kFloatWeightLayouts.begin(), kFloatWeightLayouts.end()}}) {}

  std::span<const ActivationInfo> activations() const override { return kFloatWeightPolicies; }
  std::vector<PlaneSpec> policy_specs(const WeightShape& shape, Policy activation) const override {
    return x_rows().policy_specs(shape, activation);
  }
  std::vector<WrittenRange> policy_ranges(const WeightShape& shape, Policy activation) const override {
    return x_rows().policy_ranges(shape, activation);
  }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout)) return why_not;
    return refused_size(shape);
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout) const override {
    return {{"original_weight", shape.dtype, {shape.n, shape.k}}};
  }

  Planes quantize(const Matrix& weight, Layout) const override {
    Planes planes = make_planes(plane_specs({weight.dtype, weight.rows, weight.cols}, kPlain));
    planes[0].bytes.assign(weight.bytes.begin(), weight.bytes.end());
    return planes;
  }

  Written written(const WeightShape&, Layout, Magnitudes of) const override {
    return {{"", source(), {{"original_weight", {-of.most, of.most}}}}};
  }
  int64_t element_of(const WeightShape& shape, std::string_view, int64_t row, int64_t k) const override {
    return row * shape.k + k;
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    for (int64_t k = 0; k < shape.k; ++k) {
      const double value = load_float(shape.dtype, plain[0].bytes, row * shape.k + k);
      out[k] = {.product = value, .zero = 0, .code = value, .scale = 1};
    }
  }

  bool quantizes_weight() const override { return false; }
  CodeSet codes() const override { return {}; }

  // Recorded with exact sums: no library has this layer.
  LinearStages recorded_stages(const WeightShape&, Policy, DType y) const override {
    return {.accumulator = DType::float64, .output_cast = y};
  }

  std::string place(const WeightShape& shape, Layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    if (plane_name == "activation_scale_ub") return "the activation's upper bound";
    const int64_t at = static_cast<int64_t>(byte_offset) / dtype_bytes(shape.dtype);
    return named_indices("row", "k", at, shape.k);
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_float_weight() {
  std::vector<std::unique_ptr<Scheme>> all;
  all.push_back(std::make_unique<FloatWeight>());
  return all;
}

}  // namespace qcts
