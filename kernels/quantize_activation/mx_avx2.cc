// x as kernels/quantize/mx_avx2.cc has the weight (torchao 0.18 mx_tensor.py, MXTensor.to_mx by
// act_quant_kwargs).
#include "kernels/avx2/mx.h"

const qcts_kernel qcts_kernel_quantize_activation_mx_avx2 =
    qcts::activation_rows<qcts_kernel_quantize_activation_mx_avx2,
                          qcts::avx2::fenced<qcts::avx2::quantize_mx_rows<qcts::avx2::MxCodes>>>(
        "mx:dyn_block32", "avx2",
        "scales of eight blocks at once, then codes; bound by two instructions an element");
