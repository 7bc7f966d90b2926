// SPDX-License-Identifier: BSD-3-Clause
// For layouts and limits, see kernels/sm90a/fp8.h and int4.h.
#include "kernels/sm90a/fp8.h"
#include "kernels/sm90a/int4.h"

namespace qcts::sm90a {
namespace {

qcts_status int4_tinygemm(const qcts_problem& p) {
  return run_int4<Int4Decoder<true>>(p, int4_tinygemm_weight(p));
}
qcts_status int4_plain(const qcts_problem& p) {
  return run_int4<Int4Decoder<false>>(p, int4_plain_weight(p));
}

}  // namespace
}  // namespace qcts::sm90a

using namespace qcts;

const qcts_kernel qcts_kernel_linear_fp8_row_dyn_sm90a =
    sm90a::fp8_dyn_row<qcts_kernel_linear_fp8_row_dyn_sm90a, sm80::fp8_row_weight>(
        "fp8_row:dyn_row,dyn_row_mslk");
const qcts_kernel qcts_kernel_linear_fp8_dyn_sm90a =
    sm90a::with_one_scale_of_x(sm90a::fp8_dyn_row<qcts_kernel_linear_fp8_dyn_sm90a, sm80::fp8_weight>(
        "fp8:dyn_tensor,static_tensor,static_tensor_out"));

const qcts_kernel qcts_kernel_linear_int4_tinygemm_sm90a =
    sm90a::int4_row<qcts_kernel_linear_int4_tinygemm_sm90a, sm90a::int4_tinygemm>("int4_tinygemm");
const qcts_kernel qcts_kernel_linear_int4_plain_sm90a =
    sm90a::int4_row<qcts_kernel_linear_int4_plain_sm90a, sm90a::int4_plain>("int4_plain");
