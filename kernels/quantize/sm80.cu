// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sm80/gguf.h"
#include "kernels/sm80/quantize_ops.h"

using namespace qcts;

namespace {

constexpr const char* kRows = "a block per row, twice, 16 bytes per lane on both sides; bound by reading x";
constexpr const char* kGroups =
    "a few lanes per group, 16 bytes per lane on both sides; bound by reading x and by divisions";
constexpr const char* kTensor =
    "a pass for the largest magnitude, then codes, 16 bytes per lane; bound by reading x twice";

template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
constexpr qcts_kernel row_of(const char* scheme, const char* how) {
  return exact_launched<kKernel, kRun>(QCTS_OP_QUANTIZE, scheme, "sm80", how);
}
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
constexpr qcts_kernel row_of(const char* scheme, const char* how,
                             decltype(qcts_kernel::workspace_bytes) workspace_bytes) {
  return exact_entry(QCTS_OP_QUANTIZE, scheme, "sm80", how,
                     {.supports = supports_problem<kKernel>,
                      .run = run_launched<kKernel, kRun>,
                      .workspace_bytes = workspace_bytes,
                      .failure = last_failure});
}

qcts_status quantize_tinyq(const qcts_problem& p) {
  return sm80::quantize(p, sm80::TinyqQuantizer(p), sm80::runs_of(p, p.k));
}
qcts_status quantize_int4_plain(const qcts_problem& p) {
  return sm80::quantize(p, sm80::PlainQuantizer(p), sm80::runs_of(p, p.group));
}
qcts_status quantize_int4_tinygemm(const qcts_problem& p) {
  return sm80::quantize(p, sm80::TinygemmQuantizer(p), sm80::runs_of(p, p.group));
}

// Computes codes and scalers, then the mean of the scalers, then codes of the scalers.
qcts_status quantize_nf4(const qcts_problem& p) {
  sm80::Nf4Quantizer family = {};
  family.codes = sm80::out_bytes(p, "quantized_data");
  family.scalers = static_cast<uint8_t*>(p.workspace);
  sm80::Nf4Scalers scalers = {family.scalers,
                              p.n * p.k / kNf4Block,
                              sm80::out_bytes(p, "scaler_mean"),
                              sm80::out_bytes(p, "quantization_factor"),
                              sm80::out_bytes(p, "quantized_scalers"),
                              sm80::out_bytes(p, "nf4"),
                              {}};
  for (int code = 0; code < 16; ++code) scalers.values[code] = scalar::round_to(p.w_dtype, kNf4Values[code]);
  nf4_bounds(p.w_dtype, scalers.values, family.bounds);
  if (const qcts_status status = sm80::quantize(p, family, sm80::runs_of(p, kNf4Block)); status != QCTS_OK)
    return status;
  return sm80::with_type(p.w_dtype, [&](auto type) {
    using T = decltype(type);
    const Launch mean = {.blocks_x = 1, .threads = sm80::kBlockThreads, .shared_bytes = sm80::kSharedBytes},
                 codes = {.blocks_x = blocks_for(scalers.count / kNf4Scalers, sm80::kBlockWarps),
                          .threads = sm80::kBlockThreads};
    const qcts_status status = launch(p, mean, sm80::nf4_mean<T>, scalers);
    return status == QCTS_OK ? launch(p, codes, sm80::nf4_scalers<T>, scalers) : status;
  });
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int8_row_sm80 =
    row_of<qcts_kernel_quantize_int8_row_sm80, sm80::quantize_affine_groups>("int8_row", kRows);
const qcts_kernel qcts_kernel_quantize_int8_row_reduced_sm80 =
    row_of<qcts_kernel_quantize_int8_row_reduced_sm80, sm80::quantize_affine_groups>("int8_row_reduced",
                                                                                     kRows);
const qcts_kernel qcts_kernel_quantize_int8_group_sm80 =
    row_of<qcts_kernel_quantize_int8_group_sm80, sm80::quantize_affine_groups>("int8_group", kGroups);
const qcts_kernel qcts_kernel_quantize_int8_tensor_sm80 =
    row_of<qcts_kernel_quantize_int8_tensor_sm80, sm80::quantize_int8_tensor>("int8_tensor", kTensor);
const qcts_kernel qcts_kernel_quantize_int8_tensor_reduced_sm80 =
    row_of<qcts_kernel_quantize_int8_tensor_reduced_sm80, sm80::quantize_int8_tensor>("int8_tensor_reduced",
                                                                                      kTensor);
const qcts_kernel qcts_kernel_quantize_intx_sm80 =
    row_of<qcts_kernel_quantize_intx_sm80, sm80::quantize_intx>("intx", kGroups);
const qcts_kernel qcts_kernel_quantize_tinyq_sm80 =
    row_of<qcts_kernel_quantize_tinyq_sm80, quantize_tinyq>("tinyq", kRows);
const qcts_kernel qcts_kernel_quantize_int4_plain_sm80 =
    row_of<qcts_kernel_quantize_int4_plain_sm80, quantize_int4_plain>("int4_plain", kGroups);
const qcts_kernel qcts_kernel_quantize_int4_tinygemm_sm80 =
    row_of<qcts_kernel_quantize_int4_tinygemm_sm80, quantize_int4_tinygemm>("int4_tinygemm", kGroups);
const qcts_kernel qcts_kernel_quantize_fp8_row_sm80 =
    row_of<qcts_kernel_quantize_fp8_row_sm80, sm80::quantize_float8>("fp8_row", kRows);
const qcts_kernel qcts_kernel_quantize_fp8_sm80 =
    row_of<qcts_kernel_quantize_fp8_sm80, sm80::quantize_float8>("fp8", kRows);
const qcts_kernel qcts_kernel_quantize_mx_sm80 =
    row_of<qcts_kernel_quantize_mx_sm80, sm80::quantize_mx>("mx", kGroups);
const qcts_kernel qcts_kernel_quantize_nvfp4_sm80 =
    row_of<qcts_kernel_quantize_nvfp4_sm80, sm80::quantize_nvfp4>("nvfp4", kGroups);
const qcts_kernel qcts_kernel_quantize_gguf_proto_sm80 =
    row_of<qcts_kernel_quantize_gguf_proto_sm80, sm80::run_gguf<true>>(
        "gguf_proto", "a warp per super block, 16 bytes per lane; bound by memory");
const qcts_kernel qcts_kernel_quantize_nf4_sm80 = row_of<qcts_kernel_quantize_nf4_sm80, quantize_nf4>(
    "nf4", "16 bytes per lane; bound by 15 comparisons and a division per element", nf4_workspace_bytes);
const qcts_kernel qcts_kernel_quantize_fp8_sparse24_sm80 =
    row_of<qcts_kernel_quantize_fp8_sparse24_sm80, sm80::quantize_sparse24<sm80::Sparse24Quantizer<>>>(
        "fp8_sparse24", kRows, [](const qcts_problem*) { return uint64_t{sizeof(uint32_t)}; });
