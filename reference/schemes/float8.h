// SPDX-License-Identifier: BSD-3-Clause
// Float8 weights with one float32 scale per block of [n, k]: the class of the families fp8_row and fp8.
//
// The producers are two functions of torchao 0.18.0:
//   - Float8Tensor.from_hp in quantization/quantize_/workflows/float8/float8_tensor.py, on its "torch" path
//     (without MSLK on Hopper), for Float8WeightOnlyConfig and Float8DynamicActivationFloat8WeightConfig;
//   - PrototypeFloat8Tensor.from_hp in prototype/quantization/float8_static_quant/prototype_float8_tensor.py,
//     for Float8StaticActivationFloat8WeightConfig.
// The numbers are computed in reference/numerics/float8.h.
// The meaning is code.float() * scale in float32, then the cast to the logical dtype.
// torchao's _dequantize_affine_float8 defines it.
#pragma once

#include <string>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

struct Float8Parameters {
  std::string name, family, summary;
  DType code = DType::float8_e4m3fn;
  // Elements that share a scale: block_rows x block_cols; 0 means the whole side.
  int64_t block_rows = 1, block_cols = 0;
  // Adds layout "mslk": the bytes of "plain" by the recipe of MSLK's kernel on sm90, float8_scale_floored.
  bool has_floored_recipe = false;
};

// Activation policies, with the planes "qdata" (float8, [m, k]) and "scale" (float32):
//   dyn_row, dyn_tensor, dyn_block128   One scale per row of x, for all of x, or per 1 x 128 block.
//                                       The planes "hp_value_lb" and "hp_value_ub" (float64 []) of `weight`,
//                                       if present, are the Float8Bounds.
//   dyn_row_mslk                        Uses float8_scale_floored, with "hp_value_ub" as upper bound.
//   dyn_row_fbgemm                      Uses float8_scale_bounded by "activation_scale_ub" of `weight`.
//   static_tensor, static_tensor_out    The scale is "act_quant_scale" of `weight`. static_tensor_out also
//                                       stores "output_act_quant_scale" for the layer's output.
//   dyn_row_recip, dyn_tensor_recip,    torchao's first generation up to 0.11. Uses float8_scale_at_least
//   static_tensor_recip                 or "act_quant_scale", and codes by float8_code_by_reciprocal.
class Float8Scheme final : public Scheme {
 public:
  explicit Float8Scheme(Float8Parameters p);

  std::unique_ptr<Scheme> with_group(int64_t length) const override;
  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override;
  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout layout) const override;
  Planes quantize(const Matrix& weight, Layout layout) const override;
  Written written(const WeightShape& shape, Layout layout, Magnitudes of) const override;
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row, int64_t k) const override;
  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override;
  std::span<const ActivationInfo> activations() const override;
  std::vector<PlaneSpec> policy_specs(const WeightShape& shape, Policy activation) const override;
  std::vector<WrittenRange> policy_ranges(const WeightShape& shape, Policy activation) const override;
  std::vector<PlaneSpec> activation_specs(const Matrix& x, Policy activation) const override;
  Planes quantize_activation(const Matrix& x, Policy activation, const Planes& weight) const override;
  void exact_activation(const Planes& planes, const Matrix& x, Policy activation, int64_t row,
                        std::span<double> out) const override;
  LinearStages recorded_stages(const WeightShape& weight, Policy activation, DType y) const override;
  CodeSet codes() const override { return float_codes(p_.code); }
  std::string place(const WeightShape& shape, Layout layout, std::string_view plane,
                    uint64_t byte_offset) const override;

 private:
  float activation_scale(DType x, Policy activation, const Planes& weight, float largest) const;

  Float8Parameters p_;
};

// A scheme of other weights that quantizes x like fp8_row.
class Float8RowsOfX : public Scheme {
 public:
  std::vector<PlaneSpec> activation_specs(const Matrix& x, Policy activation) const final;
  Planes quantize_activation(const Matrix& x, Policy activation, const Planes& weight) const final;
  void exact_activation(const Planes& planes, const Matrix& x, Policy activation, int64_t row,
                        std::span<double> out) const final;

 protected:
  explicit Float8RowsOfX(SchemeInfo info);
  const Float8Scheme& x_rows() const { return x_; }

 private:
  Float8Scheme x_;
};

}  // namespace qcts
