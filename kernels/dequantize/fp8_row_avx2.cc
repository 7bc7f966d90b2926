// One byte in, two or four out: kernels/avx2/scaled.h. Roundings as in fp8_row_scalar.cc.
#include "kernels/avx2/scaled.h"

namespace {

using namespace qcts::avx2;

void dequantize_fp8_row(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const char*>(qcts::in_plane(p, "scale"));
  const bool past_caches = is_past_caches(p, p.k);
  for (int64_t n = first; n < last; ++n) {
    float scale;
    std::memcpy(&scale, scales + 4 * n, 4);
    scale_floats<Float8::e4m3>(p.w_dtype, codes + n * p.k, p.k, scale, past_caches,
                               static_cast<char*>(p.y) + n * p.ldy_bytes);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_fp8_row_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_fp8_row_avx2, fenced<dequantize_fp8_row>>(
        QCTS_OP_DEQUANTIZE, "fp8_row", "avx2", "eight elements at a time; bound by writing the result");
