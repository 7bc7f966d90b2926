// x by the same rules as the weight in kernels/quantize/fp8_scalar.cc, with bounds where given
// (kernels/float8_scales.h).
#include "kernels/scalar_blocks.h"

namespace {

bool takes_fp8_policy(const char* activation) {
  return std::strcmp(activation, "dyn_row") == 0 || std::strcmp(activation, "dyn_tensor") == 0 ||
         std::strcmp(activation, "dyn_block128") == 0 || std::strcmp(activation, "static_tensor") == 0 ||
         std::strcmp(activation, "static_tensor_out") == 0;
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_activation_fp8_scalar = qcts::exact_entry(
    QCTS_OP_QUANTIZE_ACTIVATION, "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out",
    "scalar", "two passes a block: absolute maximum, then codes; bound by one division an element",
    {qcts::supports_activation<qcts_kernel_quantize_activation_fp8_scalar, takes_fp8_policy>,
     qcts::run_checked_activation<qcts_kernel_quantize_activation_fp8_scalar,
                                  qcts::scalar::quantize_float8_problem>});
