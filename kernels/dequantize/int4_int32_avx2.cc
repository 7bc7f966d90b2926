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
  Table table;
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += p.group) {
      const int64_t at = k / p.group * p.n + n;
      float values[16];
      for (int code = 0; code < 16; ++code) values[code] = static_cast<float>(code - zero_points[at]);
      fill_products(p.w_dtype, values, one_element(p.w_dtype, scales, at), &table);
      look_up_codes<false>(p.w_dtype, table, codes + (n * p.k + k) / 2, p.group,
                           static_cast<char*>(p.y) + n * p.ldy_bytes + k * bytes);
    }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_int32_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_int4_int32_avx2, dequantize_int4_int32>(
        QCTS_OP_DEQUANTIZE, "int4_int32", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
