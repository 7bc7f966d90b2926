// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 nvfp4_tensor.py, NVFP4Tensor.dequantize: code * (per_tensor_scale * scale), both products in
// float32, then rounded to the weight's dtype. One level has no per_tensor_scale.
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

void dequantize_nvfp4(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(qcts::in_plane(p, "scale"));
  const void* whole = qcts::in_plane(p, "per_tensor_scale");
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      const int64_t index = n * p.k + k;
      const uint32_t code = index % 2 == 0 ? pairs[index / 2] & 15u : pairs[index / 2] >> 4;
      float scale = e4m3fn_to_f32(scales[index / 16]);
      if (whole != nullptr) scale = load(QCTS_F32, whole, 0) * scale;
      store(p.w_dtype, row, k, small_to_f32(code, 2, 1) * scale);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_nvfp4_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_nvfp4_scalar, dequantize_nvfp4>(
        QCTS_OP_DEQUANTIZE, "nvfp4", "scalar",
        "one decoding, two multiplications and one rounding per element");
