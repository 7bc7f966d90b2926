// Half a byte in, two or four out: bound by writing the result. A group's 16 values are computed once
// (kernels/avx2_int4_table.h), 0.2 operations an element of 128, and looked up, 0.3: 0.7 of a plain copy
// where the result stays in L3, 0.9 and more where it does not (0.35 with a table in memory).
#include "kernels/avx2_columns.h"
#include "kernels/avx2_int4_table.h"

namespace {

using namespace qcts::avx2;

template <uint32_t kDtype>
void dequantize_int4_tinygemm_rows(const qcts_problem& p, int64_t first, int64_t last) {
  constexpr bool kWide = kDtype == QCTS_F32;
  constexpr int kBytes = kWide ? 4 : 2;
  const auto* codes = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const void* plane = qcts::in_plane(p, "scale_and_zero");
  const bool past_caches = is_past_caches(p, p.group);
  ParameterTile<2 * kBytes> pairs;
  for_tiles(first, last, p.k / p.group, [&](const Tile& tile) {
    load_tile(tile, plane, p.n, &pairs);
    for (int64_t row = 0; row < tile.rows; ++row)
      for (int64_t g = 0; g < tile.groups; ++g) {
        const int64_t n = tile.first_n + row, k = (tile.first_group + g) * p.group;
        const char* pair = pairs.at(row, g);
        const Table table =
            int4_table<true, kDtype>(one_element(kDtype, pair, 0), one_element(kDtype, pair, 1));
        look_up_codes<true, kWide>(table, codes + (n * p.k + k) / 2, p.group,
                                   static_cast<char*>(p.y) + n * p.ldy_bytes + k * kBytes, past_caches);
      }
  });
}

void dequantize_int4_tinygemm(const qcts_problem& p, int64_t first, int64_t last) {
  if (p.w_dtype == QCTS_F32) return dequantize_int4_tinygemm_rows<QCTS_F32>(p, first, last);
  if (p.w_dtype == QCTS_F16) return dequantize_int4_tinygemm_rows<QCTS_F16>(p, first, last);
  dequantize_int4_tinygemm_rows<QCTS_BF16>(p, first, last);
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_tinygemm_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_int4_tinygemm_avx2, fenced<dequantize_int4_tinygemm>>(
        QCTS_OP_DEQUANTIZE, "int4_tinygemm", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
