// SPDX-License-Identifier: BSD-3-Clause
// The launches of quantize and quantize_activation for a family. The parameters and the policy choose the
// frame.
#pragma once

#include "kernels/families/affine_groups.h"
#include "kernels/families/elements.h"
#include "kernels/sm80/tensors.h"

namespace qcts::sm80 {
namespace {

[[maybe_unused]] bool is_static(const qcts_problem& p) {
  return p.op == QCTS_OP_QUANTIZE_ACTIVATION && strncmp(p.activation, "static_", 7) == 0;
}

// int8, intx.

template <class Range>
AffineQuantizer<Range> affine_quantizer(const qcts_problem& p, const AffineRecipe& recipe) {
  AffineQuantizer<Range> family = {};
  family.codes = out_bytes(p, "qdata");
  family.scales = out_bytes(p, "scale");
  family.zero_points = out_bytes(p, "zero_point");
  family.mapping = recipe.mapping == AffineMapping::asymmetric  ? QCTS_ASYMMETRIC
                   : recipe.mapping == AffineMapping::symmetric ? QCTS_SYMMETRIC
                                                                : QCTS_SYMMETRIC_NO_CLIPPING;
  family.scale_dtype = plane_dtype(p.out_planes, p.n_out_planes, "scale");
  family.code_min = recipe.code_min;
  family.code_max = recipe.code_max;
  family.min_scale = recipe.min_scale;
  family.in_float32 = recipe.common == QCTS_F32;
  return family;
}

[[maybe_unused]] qcts_status quantize_affine(const qcts_problem& p, const AffineRecipe& recipe,
                                             const Runs& x) {
  if (recipe.mapping == AffineMapping::symmetric)
    return quantize(p, affine_quantizer<Magnitude>(p, recipe), x);
  return quantize(p, affine_quantizer<MinMax<true>>(p, recipe), x);
}

// Computes one scale for all elements. The planes hold it in the end.
[[maybe_unused]] qcts_status quantize_int8_tensor(const qcts_problem& p) {
  const Runs x = runs_of(p, p.k);
  const AffineRecipe recipe = int8_recipe(p);
  auto family = affine_quantizer<Magnitude>(p, recipe);
  const qcts_status status =
      scale_of_all(p, x, family.scales, StoreScale<AffineQuantizer<Magnitude>>{family});
  if (status != QCTS_OK) return status;
  auto codes = affine_quantizer<NoRange>(p, recipe);
  codes.given_scale = family.scales;
  codes.scales = nullptr;
  return quantize(p, codes, x);
}

[[maybe_unused]] qcts_status quantize_affine_groups(const qcts_problem& p) {
  return quantize_affine(p, int8_recipe(p), runs_of(p, p.group != 0 ? p.group : p.k));
}
[[maybe_unused]] qcts_status quantize_intx(const qcts_problem& p) {
  const bool groups = p.op == QCTS_OP_QUANTIZE && p.group != 0;
  return quantize_affine(p, intx_recipe(p), runs_of(p, groups ? p.group : p.k));
}

// Quantizes rows of x by the policies of kernels/families/int8_x.h. The codes have the range of the weight's
// codes.
[[maybe_unused]] qcts_status quantize_int8_activation(const qcts_problem& p) {
  const qcts_scheme_params& params = scheme_params(p);
  AffineRecipe recipe = {p.x_dtype,
                         QCTS_F32,
                         is_policy(p, "dyn_row_asym") ? AffineMapping::asymmetric : AffineMapping::symmetric,
                         static_cast<float>(params.code_min),
                         static_cast<float>(params.code_max),
                         kInt8MinScale};
  if (is_policy(p, "dyn_row_sym_127")) {
    recipe.code_min = -127;
    recipe.code_max = 127;
    recipe.min_scale = scalar::round_to(p.x_dtype, 1e-5f);
    if (p.x_dtype == QCTS_BF16) recipe.common = QCTS_BF16;
  }
  const Runs x = runs_of(p, p.k);
  if (!is_static(p)) return quantize_affine(p, recipe, x);
  auto family = affine_quantizer<NoRange>(p, recipe);
  family.given_scale = given_bytes(p, "act_quant_scale");
  family.given_zero_point =
      is_policy(p, "static_tensor_sym") ? nullptr : given_bytes(p, "act_quant_zero_point");
  family.has_one = true;
  return quantize(p, family, x);
}

// float8.

template <class Range>
Float8Quantizer<Range> float8_quantizer(const qcts_problem& p) {
  const bool weight = p.op == QCTS_OP_QUANTIZE;
  Float8Quantizer<Range> family = {};
  family.codes = out_bytes(p, "qdata");
  family.scales = out_bytes(p, "scale");
  family.format = small_format(scheme_params(p).element_dtype);
  const bool is_mslk = weight ? same_text(p.layout, "mslk") : is_policy(p, "dyn_row_mslk");
  const bool is_fbgemm = is_policy(p, "dyn_row_fbgemm");
  if (is_mslk) family.min = 1.0f / 512;
  if (is_fbgemm) {
    family.upper_float = given_bytes(p, "activation_scale_ub");
    family.least = 1.0f / (448.0f * 512.0f);
  }
  family.in_float32 = is_mslk || is_fbgemm;
  if (!weight) {
    family.lower = given_bytes(p, "hp_value_lb");
    family.upper = given_bytes(p, "hp_value_ub");
  }
  return family;
}

[[maybe_unused]] Runs float8_runs(const qcts_problem& p) {
  if (p.op == QCTS_OP_QUANTIZE) {
    const int64_t rows = scheme_params(p).group_rows;
    return runs_of(p, p.group != 0 ? p.group : p.k, rows != 0 ? rows : p.n);
  }
  if (is_policy(p, "dyn_block128")) return runs_of(p, 128);
  return runs_of(p, p.k, is_static(p) || is_policy(p, "dyn_tensor") ? p.m : 1);
}

[[maybe_unused]] qcts_status quantize_float8(const qcts_problem& p) {
  Runs x = float8_runs(p);
  const bool one_scale = x.down == x.rows && x.length == x.k;
  if (!one_scale && !is_static(p)) return quantize(p, float8_quantizer<Magnitude>(p), x);
  x.down = 1;
  auto codes = float8_quantizer<NoRange>(p);
  if (is_static(p)) {
    codes.given_scale = given_bytes(p, "act_quant_scale");
    codes.has_one = true;
  } else {
    const auto family = float8_quantizer<Magnitude>(p);
    const qcts_status status =
        scale_of_all(p, x, family.scales, StoreScale<Float8Quantizer<Magnitude>>{family});
    if (status != QCTS_OK) return status;
    codes.given_scale = codes.scales;
    codes.scales = nullptr;
  }
  return quantize(p, codes, x);
}

// Blocks.

[[maybe_unused]] qcts_status quantize_mx(const qcts_problem& p) {
  return scheme_params(p).element_dtype == QCTS_F4_E2M1_X2 ? quantize(p, MxQuantizer<4>(p), runs_of(p, 32))
                                                           : quantize(p, MxQuantizer<8>(p), runs_of(p, 32));
}

[[maybe_unused]] qcts_status quantize_nvfp4(const qcts_problem& p) {
  const Runs x = runs_of(p, 16);
  if (void* whole = out_plane(p, "per_tensor_scale"); whole != nullptr) {
    const bool given = is_static(p);
    const StoreNvfp4 finish = {given ? given_bytes(p, "act_per_tensor_scale") : nullptr};
    const qcts_status status =
        given ? finish_scale<F32>(p, whole, finish) : scale_of_all(p, x, whole, finish);
    if (status != QCTS_OK) return status;
  }
  return quantize(p, Nvfp4Quantizer(p), x);
}

// Tells the problem's device_status that the weight is not 2:4 sparse. `failed` is 0 or the inverse of the
// first four codes that are not, counted in fours.
__global__ void __launch_bounds__(32) report_dense_four(const uint32_t* failed, qcts_device_status* status) {
  if (thread_index() != 0) return;
  const auto inverse = load_global<uint32_t>(failed);
  if (inverse == 0) return;
  atomic_or(&status->status, QCTS_FAILED);
  atomic_max(&status->place, ~inverse);
}

template <class Family>
qcts_status quantize_sparse24(const qcts_problem& p) {
  Family family = {};
  family.dense = float8_quantizer<Magnitude>(p);
  family.codes = family.dense.codes;
  family.metadata = out_bytes(p, "sparse_metadata");
  family.failed = static_cast<uint32_t*>(p.workspace);
  qcts_status status = launch(p, {.blocks_x = 1, .threads = 32}, clear_word, family.failed);
  if (status == QCTS_OK) status = quantize(p, family, runs_of(p, p.k));
  if (status != QCTS_OK) return status;
  if (p.device != 0)
    return launch(p, {.blocks_x = 1, .threads = 32}, report_dense_four,
                  static_cast<const uint32_t*>(family.failed), p.device_status);
  const uint32_t failed = *family.failed;
  if (failed == 0) return QCTS_OK;
  const int64_t first = int64_t{4} * static_cast<uint32_t>(~failed);
  return launch_failed(
      "the weight is not 2:4 sparse: of the four codes from row %lld, k %lld on, more than two are not 0",
      static_cast<long long>(first / p.k), static_cast<long long>(first % p.k));
}

}  // namespace
}  // namespace qcts::sm80
