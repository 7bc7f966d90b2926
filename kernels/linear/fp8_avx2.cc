// SPDX-License-Identifier: BSD-3-Clause
// Layout and limits: kernels/avx2/fp8_linear.h.
#include "kernels/avx2/fp8_linear.h"

namespace {

using namespace qcts::avx2;

constexpr const qcts_kernel& kFp8 = qcts_kernel_linear_fp8_avx2;

template <Float8 kFormat>
constexpr qcts_kernel kFp8Entry =
    linear_of<kFp8, Fp8Blocks<kFormat>>("fp8",
                                        "64 columns per block, decoded in registers up to m = 4, else to a "
                                        "panel; bound by reading weights, then by "
                                        "fma",
                                        qcts::supports_problem<kFp8>);

const qcts_kernel& fp8_entry(const qcts_problem& p) {
  return qcts::scheme_params(p).element_dtype == QCTS_F8_E5M2 ? kFp8Entry<Float8::e5m2>
                                                              : kFp8Entry<Float8::e4m3>;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_fp8_avx2 = qcts::entry_by_member<fp8_entry>(kFp8Entry<Float8::e4m3>);
