// x as kernels/quantize/mx_avx512.cc has the weight (torchao 0.18 mx_tensor.py, MXTensor.to_mx by
// act_quant_kwargs).
#include "kernels/avx512/mx_quantize.h"

const qcts_kernel qcts_kernel_quantize_activation_mx_avx512 =
    qcts::activation_rows<qcts_kernel_quantize_activation_mx_avx512,
                          qcts::avx2::fenced<qcts::avx2::quantize_mx_rows<qcts::avx512::WideMxCodes>>>(
        "mx:dyn_block32", "avx512",
        "scales of eight blocks at once, then codes; bound by these and by memory");
