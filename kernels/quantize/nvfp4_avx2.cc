// torchao 0.18 nvfp4_tensor.py, nvfp4_quantize: at two levels a pass over the tensor comes first
// (kernels/block_scales.h).
#include "kernels/avx2_blocks.h"

namespace {

using qcts::avx2::largest_of;
using qcts::avx2::quantize_nvfp4_rows;

qcts_status quantize_nvfp4(const qcts_problem* problem) {
  if (qcts::check_run(qcts_kernel_quantize_nvfp4_avx2, problem) != QCTS_OK) return QCTS_INVALID;
  qcts::write_tensor_scale(*problem, largest_of);
  return qcts::run_rows<qcts_kernel_quantize_nvfp4_avx2, quantize_nvfp4_rows>(problem);
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_nvfp4_avx2 = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "nvfp4", "avx2",
    "a block in registers: its largest magnitude, then its codes; bound by the rounding, eight at a time",
    {qcts::supports_problem<qcts_kernel_quantize_nvfp4_avx2>, quantize_nvfp4});
