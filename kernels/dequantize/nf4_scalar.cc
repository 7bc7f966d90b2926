// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 nf4_tensor.py, get_original_weight: table[code] * (quantized_scaler / factor + mean), every
// step rounded to the weight's dtype. Blocks of 64, and of 256 scalers, run on from row to row; the even
// element has the high nibble.
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

void dequantize_nf4(const qcts_problem& p, int64_t first, int64_t last) {
  const uint32_t dtype = p.w_dtype;
  const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "quantized_data"));
  const auto* scalers = static_cast<const int8_t*>(qcts::in_plane(p, "quantized_scalers"));
  const void *factors = qcts::in_plane(p, "quantization_factor"), *table = qcts::in_plane(p, "nf4");
  const float mean = load(dtype, qcts::in_plane(p, "scaler_mean"), 0);
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      const int64_t index = n * p.k + k, block = index / 64;
      const float scaler =
          round_to(dtype, static_cast<float>(scalers[block]) / load(dtype, factors, block / 256));
      const int64_t code = index % 2 == 0 ? pairs[index / 2] >> 4 : pairs[index / 2] & 15;
      store(dtype, row, k, load(dtype, table, code) * round_to(dtype, scaler + mean));
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_nf4_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_nf4_scalar, dequantize_nf4>(
        QCTS_OP_DEQUANTIZE, "nf4", "scalar",
        "one division, one addition and one multiplication per element, each rounded");
