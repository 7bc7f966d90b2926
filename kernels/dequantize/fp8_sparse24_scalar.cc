// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 Float8Sparse2x4_2DData2DMetadataTensor in layout "plain". Two of every four k are stored, with
// a nibble that holds their places: the first one's in the low two bits. The even chunk has the low nibble.
// Nibble 0 means that the chunk has no value. Then as fp8_row.
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

void dequantize_fp8_sparse24(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* metadata = static_cast<const uint8_t*>(qcts::in_plane(p, "sparse_metadata"));
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    const float scale = load(QCTS_F32, qcts::in_plane(p, "scale"), n);
    for (int64_t chunk = 0; chunk < p.k / 4; ++chunk) {
      const int pair = metadata[n * (p.k / 8) + chunk / 2];
      const int places = chunk % 2 == 0 ? pair & 15 : pair >> 4;
      float four[4] = {0, 0, 0, 0};
      const uint8_t* stored = codes + n * (p.k / 2) + 2 * chunk;
      if (places != 0) {
        four[places & 3] = e4m3fn_to_f32(stored[0]);
        four[places >> 2] = e4m3fn_to_f32(stored[1]);
      }
      for (int64_t i = 0; i < 4; ++i) store(p.w_dtype, row, 4 * chunk + i, four[i] * scale);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_fp8_sparse24_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_fp8_sparse24_scalar, dequantize_fp8_sparse24>(
        QCTS_OP_DEQUANTIZE, "fp8_sparse24", "scalar",
        "two decodings per chunk of four, one multiplication and one rounding per element");
