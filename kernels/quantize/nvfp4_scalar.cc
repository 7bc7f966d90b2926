// torchao 0.18 nvfp4_tensor.py, nvfp4_quantize: at two levels a pass over the tensor comes first
// (kernels/block_scales.h).
#include "kernels/scalar_blocks.h"

namespace {

using qcts::scalar::largest_of;
using qcts::scalar::quantize_nvfp4_rows;

qcts_status quantize_nvfp4(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_quantize_nvfp4_scalar, problem) != QCTS_OK) return QCTS_INVALID;
  qcts::write_tensor_scale(*problem, largest_of);
  return qcts::run_rows<qcts_kernel_quantize_nvfp4_scalar, quantize_nvfp4_rows>(problem);
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_nvfp4_scalar = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "nvfp4", "scalar", "two passes a block, one element at a time; bound by the rounding",
    {qcts::supports_problem<qcts_kernel_quantize_nvfp4_scalar>, quantize_nvfp4});
