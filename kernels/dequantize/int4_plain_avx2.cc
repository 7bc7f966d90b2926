// Half a byte in, two or four out: bound by writing the result. A group's 16 values are computed once
// (kernels/avx2_int4_table.h) and looked up; the table is in the order of signed nibbles.
#include "kernels/avx2_int4_table.h"

namespace {

using namespace qcts::avx2;

void dequantize_int4_plain(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const void *scales = qcts::in_plane(p, "scale"), *zeros = qcts::in_plane(p, "zero_point");
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  Table table;
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += p.group) {
      const int64_t at = k / p.group * p.n + n;
      fill_int4<false>(p.w_dtype, one_element(p.w_dtype, scales, at), one_element(p.w_dtype, zeros, at),
                       &table);
      look_up_codes<false>(p.w_dtype, table, codes + (n * p.k + k) / 2, p.group,
                           static_cast<char*>(p.y) + n * p.ldy_bytes + k * bytes);
    }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_plain_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_int4_plain_avx2, dequantize_int4_plain>(
        QCTS_OP_DEQUANTIZE, "int4_plain", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
