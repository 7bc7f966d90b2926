// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sm80/dequantize.h"
#include "kernels/sm80/gguf.h"
#include "kernels/sm80/weights.h"

using namespace qcts;

namespace {

constexpr const char* kHow =
    "a warp per tile, 16 bytes per lane on both sides; bound by memory, above all by writing y";

template <const qcts_kernel& kKernel, class Family>
constexpr qcts_kernel row_of(const char* scheme) {
  return exact_launched<kKernel, sm80::dequantize<Family>>(QCTS_OP_DEQUANTIZE, scheme, "sm80", kHow);
}

qcts_status dequantize_mx(const qcts_problem& p) {
  return scheme_params(p).element_dtype == QCTS_F4_E2M1_X2 ? sm80::dequantize<sm80::MxWeight<4>>(p)
                                                           : sm80::dequantize<sm80::MxWeight<8>>(p);
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int8_row_sm80 =
    row_of<qcts_kernel_dequantize_int8_row_sm80, sm80::AffineWeight<false>>("int8_row");
const qcts_kernel qcts_kernel_dequantize_int8_tensor_sm80 =
    row_of<qcts_kernel_dequantize_int8_tensor_sm80, sm80::AffineWeight<false>>("int8_tensor");
const qcts_kernel qcts_kernel_dequantize_int8_row_reduced_sm80 =
    row_of<qcts_kernel_dequantize_int8_row_reduced_sm80, sm80::AffineWeight<false>>("int8_row_reduced");
const qcts_kernel qcts_kernel_dequantize_int8_tensor_reduced_sm80 =
    row_of<qcts_kernel_dequantize_int8_tensor_reduced_sm80, sm80::AffineWeight<false>>("int8_tensor_reduced");
const qcts_kernel qcts_kernel_dequantize_int8_group_sm80 =
    row_of<qcts_kernel_dequantize_int8_group_sm80, sm80::AffineWeight<false>>("int8_group");
const qcts_kernel qcts_kernel_dequantize_int8_row_v1_sm80 =
    row_of<qcts_kernel_dequantize_int8_row_v1_sm80, sm80::AffineWeight<false>>("int8_row_v1");
const qcts_kernel qcts_kernel_dequantize_int8_group_v1_sm80 =
    row_of<qcts_kernel_dequantize_int8_group_v1_sm80, sm80::AffineWeight<false>>("int8_group_v1");
const qcts_kernel qcts_kernel_dequantize_intx_sm80 =
    row_of<qcts_kernel_dequantize_intx_sm80, sm80::AffineWeight<false>>("intx");
const qcts_kernel qcts_kernel_dequantize_tinyq_sm80 =
    row_of<qcts_kernel_dequantize_tinyq_sm80, sm80::AffineWeight<true>>("tinyq");
const qcts_kernel qcts_kernel_dequantize_fp8_row_sm80 =
    row_of<qcts_kernel_dequantize_fp8_row_sm80, sm80::Float8Weight>("fp8_row");
const qcts_kernel qcts_kernel_dequantize_fp8_sm80 =
    row_of<qcts_kernel_dequantize_fp8_sm80, sm80::Float8Weight>("fp8");
const qcts_kernel qcts_kernel_dequantize_fp8_sparse24_sm80 =
    row_of<qcts_kernel_dequantize_fp8_sparse24_sm80, sm80::Sparse24Weight>("fp8_sparse24");
const qcts_kernel qcts_kernel_dequantize_nvfp4_sm80 =
    row_of<qcts_kernel_dequantize_nvfp4_sm80, sm80::Nvfp4Weight>("nvfp4");
const qcts_kernel qcts_kernel_dequantize_nf4_sm80 =
    row_of<qcts_kernel_dequantize_nf4_sm80, sm80::Nf4Weight>("nf4");
const qcts_kernel qcts_kernel_dequantize_int4_plain_sm80 =
    row_of<qcts_kernel_dequantize_int4_plain_sm80, sm80::Int4Weight<false>>("int4_plain");
const qcts_kernel qcts_kernel_dequantize_int4_tinygemm_sm80 =
    row_of<qcts_kernel_dequantize_int4_tinygemm_sm80, sm80::Int4Weight<true>>("int4_tinygemm");
const qcts_kernel qcts_kernel_dequantize_mx_sm80 =
    exact_launched<qcts_kernel_dequantize_mx_sm80, dequantize_mx>(QCTS_OP_DEQUANTIZE, "mx", "sm80", kHow);
const qcts_kernel qcts_kernel_dequantize_gguf_proto_sm80 =
    exact_launched<qcts_kernel_dequantize_gguf_proto_sm80, sm80::run_gguf<false>>(
        QCTS_OP_DEQUANTIZE, "gguf_proto", "sm80",
        "a warp per super block, 16 bytes per lane; bound by memory");
