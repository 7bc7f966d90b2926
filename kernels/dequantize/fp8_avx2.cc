// One byte in, two or four out: kernels/avx2/scaled.h. Roundings as in fp8_scalar.cc.
#include "kernels/avx2/scaled.h"

namespace {

using namespace qcts::avx2;

void dequantize_fp8(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const char*>(qcts::in_plane(p, "scale"));
  const bool e5m2 = qcts::scheme_name_has(p, "_e5m2");
  const int64_t rows = qcts::scheme_name_has(p, "_tensor")     ? p.n
                       : qcts::scheme_name_has(p, "_block128") ? 128
                                                               : 1;
  const int64_t length = p.group != 0 ? p.group : p.k, groups = p.k / length;
  const bool past_caches = is_past_caches(p, length);
  for (int64_t n = first; n < last; ++n) {
    const auto scale = e5m2 ? scale_float_groups<Float8::e5m2> : scale_float_groups<Float8::e4m3>;
    scale(p.w_dtype, codes + n * p.k, groups, length, scales + 4 * (n / rows * groups), past_caches,
          static_cast<char*>(p.y) + n * p.ldy_bytes);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_fp8_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_fp8_avx2, fenced<dequantize_fp8>>(
        QCTS_OP_DEQUANTIZE, "fp8", "avx2", "eight elements at a time; bound by writing the result");
