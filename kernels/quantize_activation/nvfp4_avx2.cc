// x as kernels/quantize/nvfp4_avx2.cc has the weight (torchao 0.18 nvfp4_tensor.py, nvfp4_linear).
#include "kernels/avx2_blocks.h"

namespace {

bool takes_nvfp4_policy(const char* activation) {
  return std::strcmp(activation, "dyn_block16") == 0 || std::strcmp(activation, "dyn_tensor_block16") == 0 ||
         std::strcmp(activation, "static_tensor_block16") == 0;
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_activation_nvfp4_avx2 = qcts::exact_entry(
    QCTS_OP_QUANTIZE_ACTIVATION, "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "avx2",
    "a block in registers: its largest magnitude, then its codes; bound by the rounding, eight at a time",
    {qcts::supports_activation<qcts_kernel_quantize_activation_nvfp4_avx2, takes_nvfp4_policy>,
     qcts::run_checked_activation<qcts_kernel_quantize_activation_nvfp4_avx2,
                                  qcts::avx2::quantize_nvfp4_problem>});
