// SPDX-License-Identifier: BSD-3-Clause
// Turns x into float8 codes and float32 scales, for `linear`: a first pass, the same as quantize_activation.
#pragma once

#include "kernels/sm80/linear.h"
#include "kernels/sm80/quantize_ops.h"

namespace qcts::sm80 {
namespace {

// The workspace: codes [m, k], then scales, one for each row or one for all.
struct CodedX {
  uint8_t *codes, *scales;
};
[[maybe_unused]] int64_t fp8_code_bytes(const qcts_problem& p) { return (p.m * p.k + 63) / 64 * 64; }
[[maybe_unused]] uint64_t fp8_workspace_bytes(const qcts_problem* p) {
  return static_cast<uint64_t>(fp8_code_bytes(*p) + p->m * static_cast<int64_t>(sizeof(float)));
}
[[maybe_unused]] CodedX coded_x(const qcts_problem& p) {
  auto* workspace = static_cast<uint8_t*>(p.workspace);
  return {workspace, workspace + fp8_code_bytes(p)};
}

// Runs quantize_activation on x, with the planes that this op has. It reads bounds and a given scale from the
// planes of the weight.
[[maybe_unused]] qcts_status code_x(const qcts_problem& p, const CodedX& to) {
  qcts_plane planes[2] = {};
  planes[0].name = "qdata";
  planes[0].data = to.codes;
  planes[1].name = "scale";
  planes[1].data = to.scales;
  qcts_problem activation = p;
  activation.op = QCTS_OP_QUANTIZE_ACTIVATION;
  activation.out_planes = planes;
  activation.n_out_planes = 2;
  return quantize_float8(activation);
}

// run() of a linear that codes x itself.
template <const qcts_kernel& kKernel, qcts_status (*kRun)(const qcts_problem&)>
qcts_status run_fp8_policy(const qcts_problem* p) {
  const qcts_problem copy = as_weight_only(*p);
  if (kKernel.supports(p, nullptr, 0) != QCTS_OK || check_run(kKernel, &copy) != QCTS_OK ||
      !gives_scale(kKernel, *p))
    return QCTS_INVALID;
  return copy.m == 0 ? QCTS_OK : kRun(*p);
}

}  // namespace
}  // namespace qcts::sm80
