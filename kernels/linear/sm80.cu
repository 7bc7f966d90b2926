// SPDX-License-Identifier: BSD-3-Clause
// For layouts and limits, see kernels/sm80/decode.h (up to 16 rows of x and int4), kernels/sm80/gemv.h (few
// rows), kernels/sm80/gemm.h (more rows) and kernels/sm80/int8_gemm.h (int8 rows of x).
// kernels/sm80/float_gemv.h has float weights.
#include "kernels/sm80/float_gemv.h"
#include "kernels/sm80/int8_gemm.h"

namespace qcts::sm80 {
namespace {

qcts_status int4_tinygemm(const qcts_problem& p) {
  if (is_tile_packed(p.layout)) return run_linear<TilePackedDecoder>(p, int4_tile_packed_weight(p));
  return run_linear<Int4Decoder<true>>(p, int4_tinygemm_weight(p));
}
qcts_status int4_plain(const qcts_problem& p) {
  return run_linear<Int4Decoder<false>>(p, int4_plain_weight(p));
}
qcts_status int8(const qcts_problem& p) { return run_linear<Int8Decoder>(p, int8_weight(p)); }
qcts_status int8_tensor(const qcts_problem& p) { return run_linear<Int8Decoder>(p, int8_tensor_weight(p)); }
qcts_status tinyq(const qcts_problem& p) { return run_linear<Int8Decoder>(p, tinyq_weight(p)); }

using E4m3 = FloatDecoder<4, 3>;
using E5m2 = FloatDecoder<5, 2>;
qcts_status fp8_row(const qcts_problem& p) { return run_linear<E4m3>(p, fp8_row_weight(p)); }
qcts_status fp8(const qcts_problem& p) {
  return scheme_params(p).element_dtype == QCTS_F8_E5M2 ? run_linear<E5m2>(p, fp8_weight(p))
                                                        : run_linear<E4m3>(p, fp8_weight(p));
}
qcts_status mx(const qcts_problem& p) {
  const uint32_t element = scheme_params(p).element_dtype;
  const Weight weight = mx_weight(p);
  if (element == QCTS_F4_E2M1_X2) return run_linear<E2m1Decoder<false>>(p, weight);
  if (element == QCTS_F6_E2M3) return run_linear<FloatDecoder<2, 3>>(p, weight);
  if (element == QCTS_F6_E3M2) return run_linear<FloatDecoder<3, 2>>(p, weight);
  if (element == QCTS_F8_E5M2) return run_linear<E5m2>(p, weight);
  return run_linear<E4m3>(p, weight);
}
qcts_status nvfp4(const qcts_problem& p) { return run_linear<E2m1Decoder<true>>(p, nvfp4_weight(p)); }
// Tensor cores take the table if x has its type.
qcts_status nf4(const qcts_problem& p) {
  if (p.w_dtype != p.x_dtype) return launch_gemv<Nf4Decoder>(p, nf4_weight(p));
  return run_linear<Nf4Decoder>(p, nf4_weight(p));
}
qcts_status fp8_sparse24(const qcts_problem& p) {
  return run_linear<SparseDecoder>(p, fp8_sparse24_weight(p));
}

constexpr const char kNibbles[] =
    "up to m = 16 warps that split k, each with 32 columns on tensor cores, bound by reading half a byte per "
    "weight; else 64 columns per block on tensor cores, scales on sums of groups, bound by issuing "
    "instructions";
constexpr const char kBytes[] =
    "up to m = 4 a warp per row of the weight, else 64 columns per block on tensor cores, scales on sums; "
    "bound "
    "by "
    "issuing instructions";

}  // namespace
}  // namespace qcts::sm80

using namespace qcts;

const qcts_kernel qcts_kernel_linear_int4_tinygemm_sm80 = sm80::with_layouts(
    sm80::linear_row<qcts_kernel_linear_int4_tinygemm_sm80, sm80::int4_tinygemm>(
        "int4_tinygemm", sm80::kNibbles, sm80::supports_tinygemm<qcts_kernel_linear_int4_tinygemm_sm80>,
        sm80::sums_bytes<sm80::Int4Decoder<true>>),
    "tile_packed_4d,tile_packed_4d_v1");
const qcts_kernel qcts_kernel_linear_int4_plain_sm80 =
    sm80::linear_row<qcts_kernel_linear_int4_plain_sm80, sm80::int4_plain>(
        "int4_plain", sm80::kNibbles, sm80::supports_linear<qcts_kernel_linear_int4_plain_sm80>,
        sm80::sums_bytes<sm80::Int4Decoder<false>>);

const qcts_kernel qcts_kernel_linear_int8_row_sm80 =
    sm80::linear_row<qcts_kernel_linear_int8_row_sm80, sm80::int8>("int8_row", sm80::kBytes);
const qcts_kernel qcts_kernel_linear_int8_row_reduced_sm80 =
    sm80::linear_row<qcts_kernel_linear_int8_row_reduced_sm80, sm80::int8>("int8_row_reduced", sm80::kBytes);
const qcts_kernel qcts_kernel_linear_int8_tensor_sm80 =
    sm80::linear_row<qcts_kernel_linear_int8_tensor_sm80, sm80::int8_tensor>("int8_tensor", sm80::kBytes);
const qcts_kernel qcts_kernel_linear_int8_tensor_reduced_sm80 =
    sm80::linear_row<qcts_kernel_linear_int8_tensor_reduced_sm80, sm80::int8_tensor>("int8_tensor_reduced",
                                                                                     sm80::kBytes);
const qcts_kernel qcts_kernel_linear_int8_group_sm80 =
    sm80::linear_row<qcts_kernel_linear_int8_group_sm80, sm80::int8>("int8_group", sm80::kBytes);
const qcts_kernel qcts_kernel_linear_tinyq_sm80 =
    sm80::linear_row<qcts_kernel_linear_tinyq_sm80, sm80::tinyq>("tinyq", sm80::kBytes);

const qcts_kernel qcts_kernel_linear_fp8_row_sm80 =
    sm80::linear_row<qcts_kernel_linear_fp8_row_sm80, sm80::fp8_row>("fp8_row", sm80::kBytes);
const qcts_kernel qcts_kernel_linear_fp8_sm80 =
    sm80::linear_row<qcts_kernel_linear_fp8_sm80, sm80::fp8>("fp8", sm80::kBytes);
const qcts_kernel qcts_kernel_linear_mx_sm80 = sm80::linear_row<qcts_kernel_linear_mx_sm80, sm80::mx>(
    "mx",
    "up to m = 4 a warp per row of the weight, else 64 columns per block on tensor cores, scales on sums of "
    "32; "
    "bound by issuing instructions");
const qcts_kernel qcts_kernel_linear_nvfp4_sm80 = sm80::with_scaled_weights(sm80::linear_row<
                                                                            qcts_kernel_linear_nvfp4_sm80,
                                                                            sm80::nvfp4>(
    "nvfp4",
    "up to m = 4 a warp per row of the weight, else 64 columns per block on tensor cores, elements scaled "
    "exactly; bound by issuing instructions"));
const qcts_kernel qcts_kernel_linear_nf4_sm80 = sm80::linear_row<qcts_kernel_linear_nf4_sm80, sm80::nf4>(
    "nf4",
    "up to m = 4, or if x has another type than the table, a warp per row of the weight, else 64 columns per "
    "block on tensor cores; bound by issuing instructions",
    sm80::supports_nf4<qcts_kernel_linear_nf4_sm80>);
const qcts_kernel qcts_kernel_linear_fp8_sparse24_sm80 = sm80::linear_row<
    qcts_kernel_linear_fp8_sparse24_sm80, sm80::fp8_sparse24>(
    "fp8_sparse24",
    "up to m = 4 a warp per row of the weight, else 64 columns per block on tensor cores, zeros filled in "
    "registers; bound by issuing instructions");

// W8A8 and 8da4w.
const qcts_kernel qcts_kernel_linear_int8_row_dyn_sm80 =
    sm80::int8_row<qcts_kernel_linear_int8_row_dyn_sm80, sm80::int8_weight, sm80::int8_policy<FullRange>>(
        kInt8RowX);
const qcts_kernel qcts_kernel_linear_int8_tensor_dyn_sm80 =
    sm80::int8_row<qcts_kernel_linear_int8_tensor_dyn_sm80, sm80::int8_tensor_weight,
                   sm80::int8_policy<FullRange>>(kInt8TensorX);
const qcts_kernel qcts_kernel_linear_int8_row_reduced_dyn_sm80 =
    sm80::int8_row<qcts_kernel_linear_int8_row_reduced_dyn_sm80, sm80::int8_weight,
                   sm80::int8_policy<ReducedRange>>(kInt8RowReducedX);
const qcts_kernel qcts_kernel_linear_int8_tensor_reduced_dyn_sm80 =
    sm80::int8_row<qcts_kernel_linear_int8_tensor_reduced_dyn_sm80, sm80::int8_tensor_weight,
                   sm80::int8_policy<ReducedRange>>(kInt8TensorReducedX);
const qcts_kernel qcts_kernel_linear_intx_dyn_sm80 =
    sm80::int8_row<qcts_kernel_linear_intx_dyn_sm80, sm80::intx_weight, sm80::intx_policy>(
        "intx:dyn_token_asym,dyn_token_asym_s32");

const qcts_kernel qcts_kernel_linear_float_weight_sm80 =
    sm80::float_weight_row<qcts_kernel_linear_float_weight_sm80>("float_weight:dyn_row_fbgemm");
