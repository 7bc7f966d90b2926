// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of x to int8 under the policies of the int8 schemes,
// for `linear` and quantize_activation of every variant.
// The recipe is Int8Tensor.from_hp(x, PerRow()) of torchao 0.18.0. A static policy uses the scale
// and zero point that Int8StaticActivationInt8WeightConfig put into the checkpoint.
// The policy "dyn_row_sym_127" follows torchao 0.5.0 to 0.17.0.
#pragma once

#include <cstring>

#include "kernels/families/entry.h"

namespace qcts {
namespace {

// Scheme strings of kernels that quantize rows of x. Only int8_row has "dyn_row_sym_127".
#define QCTS_INT8_X_POLICIES \
  "dyn_row_sym,dyn_row_asym,static_tensor_sym,static_tensor_sym_zp,static_tensor_asym"
constexpr const char* kInt8RowX = "int8_row:" QCTS_INT8_X_POLICIES ",dyn_row_sym_127";
[[maybe_unused]] constexpr const char* kInt8TensorX = "int8_tensor:" QCTS_INT8_X_POLICIES;
[[maybe_unused]] constexpr const char* kInt8RowReducedX = "int8_row_reduced:" QCTS_INT8_X_POLICIES;
[[maybe_unused]] constexpr const char* kInt8TensorReducedX = "int8_tensor_reduced:" QCTS_INT8_X_POLICIES;
#undef QCTS_INT8_X_POLICIES

// Ranges of the codes of x, the same as for the weight.
// With reduce_range=True, one bit stays free for dot products that saturate.
struct FullRange {
  static constexpr int kMin = -128, kMax = 127;
};
struct ReducedRange {
  static constexpr int kMin = -64, kMax = 63;
};

// The value of a code of x is scale * (code - zero_point).
struct RowScale {
  float scale;
  int32_t zero_point;
};

[[maybe_unused]] bool has_given_scale(const char* policy) {
  return policy != nullptr && std::strncmp(policy, "static_", 7) == 0;
}

// Reads the planes of the policy, which must be given:
// act_quant_scale (float32), and act_quant_zero_point (int8) except for "static_tensor_sym".
[[maybe_unused]] RowScale given_scale(const qcts_problem& p) {
  RowScale given = {};
  std::memcpy(&given.scale, in_plane(p, "act_quant_scale"), 4);
  if (std::strcmp(p.activation, "static_tensor_sym") != 0)
    given.zero_point = *static_cast<const int8_t*>(in_plane(p, "act_quant_zero_point"));
  return given;
}

// A kernel may run on its packed weight without the planes.
// So a given scale is stored after the packed weight.
constexpr int64_t kGivenBytes = 64;
[[maybe_unused]] void keep_given_scale(const qcts_problem& p, void* to) {
  if (!has_given_scale(p.activation)) return;
  const RowScale given = given_scale(p);
  std::memcpy(to, &given, sizeof given);
}
[[maybe_unused]] RowScale kept_scale(const void* from) {
  RowScale given;
  std::memcpy(&given, from, sizeof given);
  return given;
}

// Writes the outputs of quantize_activation, except for the codes:
// a scale and a zero point for each row, or one of each for all rows.
[[maybe_unused]] void store_row_scale(const qcts_problem& p, int64_t m, RowScale chosen) {
  if (has_given_scale(p.activation) && m != 0) return;
  std::memcpy(static_cast<char*>(out_plane(p, "scale")) + 4 * m, &chosen.scale, 4);
  static_cast<int8_t*>(out_plane(p, "zero_point"))[m] = static_cast<int8_t>(chosen.zero_point);
}

}  // namespace
}  // namespace qcts
