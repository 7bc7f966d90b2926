// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 quant_primitives.py, _dequantize_gguf. The scale of a block of 32 is a product, and so is its
// minimum. The code's product and its sum with the minimum each round to the weight's dtype.
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

void dequantize_gguf_proto(const qcts_problem& p, int64_t first, int64_t last) {
  const uint32_t dtype = p.w_dtype;
  const auto value = [&](const char* name, int64_t index) {
    return load(dtype, qcts::in_plane(p, name), index);
  };
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t block = 0; block < p.k / 32; ++block) {
      const int64_t at = n * (p.k / 32) + block, super = at / 8;
      const float scale =
          round_to(dtype, value("super_block_scale_scale", super) * value("quantized_block_scale", at));
      const float min =
          round_to(dtype, value("super_block_min_scale", super) * value("quantized_block_min", at));
      for (int64_t k = 32 * block; k < 32 * block + 32; ++k)
        store(dtype, row, k, round_to(dtype, value("int_data", n * p.k + k) * scale) + min);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_gguf_proto_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_gguf_proto_scalar, dequantize_gguf_proto>(
        QCTS_OP_DEQUANTIZE, "gguf_proto", "scalar",
        "a multiplication and an addition per element, each rounded");
