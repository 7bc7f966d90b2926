// Half a byte in, two or four out: kernels/avx2/int4_dequantize.h. Nibbles are signed.
#include "kernels/avx2/int4_dequantize.h"

namespace {

using namespace qcts::avx2;

template <uint32_t kOfDtype>
struct PlainParams {
  static constexpr uint32_t kDtype = kOfDtype;
  static constexpr bool kHighFirst = false, kPairs = kDtype == QCTS_BF16;
  static constexpr int kLower = 0, kUpper = -8, kBytes = kDtype == QCTS_F32 ? 4 : 2;

  explicit PlainParams(const qcts_problem& p)
      : scale_plane(qcts::in_plane(p, "scale")), zero_plane(qcts::in_plane(p, "zero_point")), n_count(p.n) {}
  void load(const Tile& tile) {
    load_tile(tile, scale_plane, n_count, &scales);
    load_tile(tile, zero_plane, n_count, &zeros);
  }
  Table table(int64_t row, int64_t g) const {
    return int4_table<false, kDtype>(one_element(kDtype, scales.at(row, g), 0),
                                     one_element(kDtype, zeros.at(row, g), 0));
  }
  EightGroups eight(int64_t row, int64_t g) const {
    return {load8(kDtype, scales.at(row, g)), load8(kDtype, zeros.at(row, g))};
  }
  static uint32_t plain(const EightGroups& groups) { return plain_groups(groups); }

  const void *scale_plane, *zero_plane;
  int64_t n_count;
  ParameterTile<kBytes> scales, zeros;
};

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_plain_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_int4_plain_avx2, dequantize_int4<PlainParams>>(
        QCTS_OP_DEQUANTIZE, "int4_plain", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
