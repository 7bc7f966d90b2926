// Half a byte in, two out: bound by writing the result. A group's 16 values (code - zero_point) * scale, of
// at most 19 bits, are computed once and looked up.
#include "kernels/avx2_table.h"

namespace {

using namespace qcts::avx2;

void dequantize_int4_int32(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* zero_points = static_cast<const int8_t*>(qcts::in_plane(p, "zero_point"));
  const void* scales = qcts::in_plane(p, "scale");
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += p.group) {
      const int64_t at = k / p.group * p.n + n;
      const __m256 zero = _mm256_set1_ps(zero_points[at]),
                   scale = _mm256_set1_ps(one_element(p.w_dtype, scales, at));
      const auto values = [&](__m256 eight) { return _mm256_mul_ps(_mm256_sub_ps(eight, zero), scale); };
      const Table table = table_of(p.w_dtype, values(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7)),
                                   values(_mm256_setr_ps(8, 9, 10, 11, 12, 13, 14, 15)));
      look_up_codes<false>(p.w_dtype, table, codes + (n * p.k + k) / 2, p.group,
                           static_cast<char*>(p.y) + n * p.ldy_bytes + k * bytes);
    }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_int32_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_int4_int32_avx2, dequantize_int4_int32>(
        QCTS_OP_DEQUANTIZE, "int4_int32", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
